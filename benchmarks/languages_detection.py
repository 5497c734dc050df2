"""Detection alone: which language a name is in, with profiles from other names and no encoder."""

from __future__ import annotations

import csv
import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from real_input_data import LANGUAGES, emoji_splits
from real_input_runs import Values

from app.language.detection import UNDETERMINED, Profiles, detect, readings, unfamiliar, warm_up
from ingest.pair import BASE_LANGUAGE
from model_updates.language_profiles import (
    LanguageProfile,
    base_profiles,
    from_bytes,
    taught_profiles,
    to_bytes,
)
from model_updates.photo.weights import LANGUAGES as PHOTO_LANGUAGES

UNLEARNED = ("bn", "el", "he", "te", "th")  # five languages in scripts that no other language of the data has
FOLDS = 5
OWN_TABLES = ("cs", "hi", "uk")  # languages of the photographs' captions that perennial-photo does not know
PHOTO_CAPTIONS = 2535  # that teach each

Names = dict[str, dict[str, str]]
"""Short names by language and concept."""


def read_names(data: Path) -> Names:
    """Returns the short names of all languages, English first."""
    names: Names = {BASE_LANGUAGE: {}}
    with (data / "emoji" / "names.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            names.setdefault(row["lang"], {})[row["key"]] = row["name"]
    return names


def fold_of(key: str) -> int:
    """Returns the part of the training names that a concept belongs to in cross-validation."""
    return hashlib.sha256(f"fold:{key}".encode()).digest()[0] % FOLDS


def learned_profiles(
    names: Mapping[str, Mapping[str, str]], splits: Mapping[str, str], *, without: int | None = None
) -> dict[str, LanguageProfile]:
    """Returns profiles from the names of the training split, one fold of it left out or none."""
    kept = {key for key, split in splits.items() if split == "train" and fold_of(key) != without}
    return taught_profiles(
        {}, {tag: [name for key, name in own.items() if key in kept] for tag, own in names.items()}
    )


def detection_alone(data: Path, *, few: bool) -> Values:
    """Detects held-out names, and training names by profiles that have not seen them."""
    splits = emoji_splits(data)
    names = read_names(data)
    if few:
        names = {tag: names[tag] for tag in (BASE_LANGUAGE, *LANGUAGES)}
    profiles = learned_profiles(names, splits)
    held_out = {tag: [own[k] for k in own if splits.get(k) == "test"] for tag, own in names.items()}
    folds = []
    for fold in range(FOLDS):
        texts = {
            tag: [own[k] for k in own if splits.get(k) == "train" and fold_of(k) == fold]
            for tag, own in names.items()
        }
        folds.append(told_apart(texts, learned_profiles(names, splits, without=fold)))
    return {
        "languages": list(names),
        "held_out": told_apart(held_out, profiles),
        "cross_validated": {
            tag: {key: float(np.mean([fold[tag][key] for fold in folds])) for key in folds[0][tag]}
            for tag in names
        },
        "profile_bytes": {tag: len(to_bytes({tag: profile})) for tag, profile in profiles.items()},
    }


def told_apart(texts: Mapping[str, Sequence[str]], profiles: Profiles) -> dict[str, dict[str, float]]:
    """Returns for each language how often its texts are told right, and what that took."""
    learned = tuple(texts)
    warm_up(learned, profiles)
    found = {}
    for tag, own in texts.items():
        started = time.perf_counter()
        guesses = [detect(text, learned, profiles) for text in own]
        seconds = time.perf_counter() - started
        searched = [[reading.language for reading in readings(guess)] for guess in guesses]
        found[tag] = {
            "first": float(np.mean([guess[0][0] == tag for guess in guesses])),
            "searched": float(np.mean([tag in tables for tables in searched])),
            "tables": float(np.mean([len(tables) for tables in searched])),
            "log_loss": float(np.mean([-np.log(max(dict(guess).get(tag, 0.0), 1e-9)) for guess in guesses])),
            "milliseconds": 1000 * seconds / len(own),
        }
    return found


def unlearned_scripts(data: Path) -> Values:
    """Leaves five languages out and asks for their names; and for those of the others, none of which may be refused."""
    splits = emoji_splits(data)
    names = read_names(data)
    learned = {tag: own for tag, own in names.items() if tag not in UNLEARNED}
    profiles = learned_profiles(learned, splits)

    def refused(tag: str) -> float:
        texts = [name for key, name in names[tag].items() if splits.get(key) == "test"]
        return float(np.mean([detect(t, tuple(learned), profiles)[0][0] == UNDETERMINED for t in texts]))

    return {"refused": {tag: refused(tag) for tag in names}, "unlearned": list(UNLEARNED)}


def shared_letters(data: Path) -> Values:
    """Asks in languages that are not learned but written as one that is: names, and captions of photographs."""
    splits = emoji_splits(data)
    names = read_names(data)
    held_out = {tag: [own[key] for key in own if splits.get(key) == "test"] for tag, own in names.items()}
    profiles = learned_profiles(names, splits)
    captions = {
        tag: own["test"][:500]
        for tag, own in _captions(data).items()
        if tag in {"en", "de", "fr", "pt", "cs"}
    }

    def said(texts: Sequence[str], learned: Sequence[str]) -> list[bool]:
        """Whether each text may be in none; texts in letters of their own are left out."""
        own = {tag: profiles[tag] for tag in learned}
        guesses = ((text, detect(text, learned, own)) for text in texts)
        return [unfamiliar(text, guess, own) for text, guess in guesses if guess[0][0] != UNDETERMINED]

    found: Values = {}
    for learned in (("en",), ("en", "de"), ("en", *LANGUAGES), tuple(names)):
        row: dict[str, float] = {}
        for what, texts in (("names", held_out), ("captions", captions)):
            own = {tag: said(texts[tag], learned) for tag in learned if tag in texts}
            row |= {what: _share(own), f"{what}_worst": max(float(np.mean(one)) for one in own.values())}
            if len(learned) < len(names):
                row[f"other_{what}"] = _share({t: said(texts[t], learned) for t in texts if t not in learned})
            else:  # each language in turn is not learned
                others = {tag: tuple(other for other in learned if other != tag) for tag in texts}
                row[f"other_{what}"] = _share({tag: said(texts[tag], others[tag]) for tag in texts})
        found[", ".join(learned) if len(learned) < 9 else str(len(learned))] = row
    return {"found": found}


def _share(said: Mapping[str, Sequence[bool]]) -> float:
    """Returns how many of all texts it is said of."""
    return float(np.mean([one for own in said.values() for one in own]))


def _captions(data: Path) -> dict[str, dict[str, list[str]]]:
    """Returns the captions of photographs by language and split."""
    captions: dict[str, dict[str, list[str]]] = {}
    with (data / "flickr8k" / "captions.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            captions.setdefault(row["lang"], {}).setdefault(row["split"], []).append(row["text"])
    return captions


def shared_table(data: Path) -> Values:
    """Tells test captions of photographs: three languages with their own tables beside those that share one."""
    captions = _captions(data)
    learned = (*PHOTO_LANGUAGES, *OWN_TABLES)
    profiles = base_profiles(PHOTO_LANGUAGES) | {
        tag: LanguageProfile.learned_from(captions[tag]["train"][:PHOTO_CAPTIONS]) for tag in OWN_TABLES
    }

    def table(tag: str) -> str:
        return tag if tag in OWN_TABLES else "shared"

    found = {}
    for tag in ("en", "de", "fr", "pt", "ar", *OWN_TABLES):
        for words in (2, None):
            texts = [" ".join(text.split()[:words]) for text in captions[tag]["test"][:500]]
            searched = [
                [table(reading.language) for reading in readings(detect(text, learned, profiles), table)]
                for text in texts
            ]
            found[f"{tag}, {'captions' if words is None else 'first two words'}"] = {
                "searched": float(np.mean([table(tag) in tables for tables in searched])),
                "tables": float(np.mean([len(tables) for tables in searched])),
            }
    return {"found": found}


def footprint(data: Path, work: Path) -> Values:
    """Measures in fresh processes what loading the profiles of 8 and 36 languages takes."""
    splits, names = emoji_splits(data), read_names(data)
    values: Values = {}
    for count, tags in (("8", (BASE_LANGUAGE, *LANGUAGES)), ("36", tuple(names))):
        profiles = learned_profiles({tag: names[tag] for tag in tags}, splits)
        file = work / f"profiles-{count}.npz"
        file.write_bytes(to_bytes(profiles))
        texts = [name for tag in tags for key, name in names[tag].items() if splits.get(key) == "test"]
        file.with_suffix(".json").write_text(json.dumps(texts), encoding="utf-8")
        command = [sys.executable, str(Path(__file__).with_name("languages.py")), "--footprint", str(file)]
        said = subprocess.run(command, capture_output=True, text=True, check=True)
        values[count] = {"bytes": file.stat().st_size} | json.loads(said.stdout)
    return values


def print_footprint(file: Path) -> None:
    """Prints seconds and memory that loading takes in this process, and after many queries."""
    texts = json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))
    before, started = _resident(), time.perf_counter()
    profiles = from_bytes(file.read_bytes())
    warm_up(tuple(profiles), profiles)
    values = {"seconds": time.perf_counter() - started, "megabytes": _resident() - before}
    started = time.perf_counter()
    for text in texts:
        detect(text, tuple(profiles), profiles)
    values["milliseconds"] = 1000 * (time.perf_counter() - started) / len(texts)
    print(json.dumps(values | {"megabytes_later": _resident() - before}))


def _resident() -> float:
    """Returns the memory of this process in megabytes."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1000
    return float("nan")
