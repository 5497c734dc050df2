"""The product after all languages of the data: each taught by the default strategy, then searched without saying which.

One home, kept in the work folder. A language that the live release knows is not taught again, so the run can be stopped
and started at any time. Queries are encoded and ranked as a user's are (`app.query`), and the same twice: told the
language and not told, in four views:

* *own*: held-out names among the held-out pictures;
* *mixed*: held-out names among all pictures of the home;
* *memory*: trained names among all pictures;
* *unseen*: the same, but the language is told by profiles that have not seen the name (five folds): nearly all names
  find their picture when the language is told, so this shows best what telling it wrong costs.
"""

from __future__ import annotations

import copy
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from languages_detection import FOLDS, fold_of, learned_profiles, read_names
from real_input_data import LANGUAGES, emoji_rows, emoji_splits
from real_input_runs import (
    DOMAIN,
    HELD_OUT,
    TRAINED,
    Bench,
    Values,
    add,
    emoji_template,
    names_slice,
    run_update,
)

from app.desk.jobs import UpdateRequest
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.learning import going_live
from app.query.parts import Encoded, encode
from app.query.question import Question
from app.query.ranking import ranked
from app.query.snapshot import Snapshot
from index.generation import Rows
from ingest.pair import BASE_LANGUAGE, SliceKey
from model_updates.language_profiles import base_profiles
from model_updates.measurement import HeldOut

DEPTH = 10
SAMPLED = 3  # one in so many trained names is looked up; all of the held-out ones are
OWN, MIXED, MEMORY, UNSEEN = VIEWS = ("own", "mixed", "memory", "unseen")
SPARE = 3  # other styles of a picture's own concept may stand before it and do not count


def many_home(bench: Bench, seed: int) -> Settings:
    """Returns the settings of a home that has learned every language of the data, teaching what is missing."""
    settings = bench.settings(f"many-{seed}")
    if not settings.home.exists():
        unfinished = settings.home.with_suffix(".new")
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.copytree(emoji_template(bench), unfinished)
        unfinished.rename(settings.home)
    splits = emoji_splits(bench.data, bench.limit)
    others = [tag for tag in read_names(bench.data) if tag not in {BASE_LANGUAGE, *LANGUAGES}]
    with Workspace.open(settings) as workspace:
        for language in (*LANGUAGES, *others):
            learned = going_live.live_release(workspace)[1].manifest.languages
            if language in learned:
                continue
            chunks = {chunk.name: chunk.id for chunk in workspace.catalog.chunks()}
            chunk = chunks.get(language)
            if chunk is None:
                chunk = add(bench, workspace, language, emoji_rows(bench.data, splits, language, (DOMAIN,)))
            outcome = run_update(workspace, UpdateRequest(chunk=chunk, seed=seed, by="benchmark"))
            if outcome.release is not None and outcome.commit is None:
                going_live.promote(workspace, outcome.release, why="benchmark", by="benchmark", force=True)
            training = outcome.training
            bench.say(
                f"language {len(learned) + 1}, {language}: {outcome.strategy}, {outcome.verdict}, "
                f"epoch {training['kept_epoch']} of {len(training['history'])}, {outcome.seconds} s"
            )
    return settings


def many_run(bench: Bench, seed: int) -> Values:
    """Looks names of every language up through search, told and not told, and counts the tables read."""
    with Workspace.open(many_home(bench, seed)) as workspace:
        snapshot = _with_base_profile(Snapshot.load(workspace))
        alike = _Alike(workspace)
        strangers = _strangers(bench, snapshot)
        found: Values = {"languages": list(snapshot.languages), "pictures": len(snapshot.generation)}
        found |= {"views": {view: {} for view in VIEWS}, "tables": {view: {} for view in VIEWS}}
        for language in snapshot.languages:
            held_out = names_slice(workspace, language, HELD_OUT)
            trained = names_slice(workspace, language, TRAINED)
            trained = HeldOut(trained.key, trained.gallery, trained.captions[::SAMPLED])
            asked = {
                OWN: _asked([snapshot], held_out, snapshot.holding(held_out.gallery), alike),
                MIXED: _asked([snapshot], held_out, None, alike),
                MEMORY: _asked([snapshot], trained, None, alike),
                UNSEEN: _asked(strangers, trained, None, alike),
            }
            for view, (hits, queries) in asked.items():
                found["views"][view][language] = hits
                found["tables"][view][language] = _tables(queries, language)
            bench.say(f"asked in {language}: R@1 changes by " + _changes(asked))
    return found


def _with_base_profile(snapshot: Snapshot) -> Snapshot:
    """Returns the snapshot with the program's English profile, which no update here touches.

    A kept home may be of before that profile was last made; nothing else in the home follows from it.
    """
    encoder = copy.copy(snapshot.encoder)
    encoder.profiles = {**encoder.profiles, **base_profiles([BASE_LANGUAGE])}
    return replace(snapshot, encoder=encoder)


def _strangers(bench: Bench, snapshot: Snapshot) -> list[Snapshot]:
    """Returns the snapshot once for each fold of concepts, with profiles that have not seen their names."""
    by_key = read_names(bench.data)
    concept = by_key[BASE_LANGUAGE]
    names = {tag: {concept[key]: name for key, name in own.items()} for tag, own in by_key.items()}
    splits = {concept[key]: split for key, split in emoji_splits(bench.data, bench.limit).items()}
    found = []
    for fold in range(FOLDS):
        encoder = copy.copy(snapshot.encoder)
        encoder.profiles = learned_profiles(names, splits, without=fold)
        found.append(replace(snapshot, encoder=encoder))
    return found


def _changes(asked: Mapping[str, tuple[Values, Sequence[Encoded]]]) -> str:
    return ", ".join(f"{loss({'': hits})[0]:+.2f} ({view})" for view, (hits, _) in asked.items())


class _Alike:
    """Which pictures show the same: one concept (by its English name), or what the query's language names alike."""

    def __init__(self, workspace: Workspace) -> None:
        self._named: dict[tuple[str, str], set[str]] = {}
        self._english: dict[str, str] = {}
        for pair in workspace.catalog.pairs():
            self._named.setdefault((pair.language, pair.text), set()).add(pair.image_id)
            if pair.language == BASE_LANGUAGE:
                self._english[pair.image_id] = pair.text

    def concept(self, image_id: str) -> str:
        """Returns what a picture shows, by its English name."""
        return self._english[image_id]

    def of(self, image_id: str, key: SliceKey, text: str) -> set[str]:
        """Returns the other pictures that answer a query as well as its own."""
        same = self._named[BASE_LANGUAGE, self._english[image_id]] | self._named[key.language, text]
        return same - {image_id}


def _asked(
    snapshots: Sequence[Snapshot], names: HeldOut, gallery: Rows | None, alike: _Alike
) -> tuple[Values, list[Encoded]]:
    """Searches every name twice.

    Args:
        snapshots: one, or one for each fold of concepts.
        names: what is looked for.
        gallery: only among the pictures of these rows; all without.
        alike: which pictures do not count as wrong.

    Returns:
        Strings of 0 and 1 by how the query was asked and depth, and the concept of each name; and the queries that
        were not told the language.
    """
    hits: dict[str, dict[str, str]] = {}
    queries: list[Encoded] = []
    for how, language in (("told", names.key.language), ("detected", "auto")):
        ranks = []
        for image_id, text in names.captions:
            snapshot = snapshots[fold_of(alike.concept(image_id)) % len(snapshots)]
            query = encode(snapshot, Question.of(text).terms, {}, language)
            hits_of_it = ranked(snapshot, query.vectors, query.readings, DEPTH + SPARE, gallery)
            others = alike.of(image_id, names.key, text)
            ordered = [hit.id for hit in hits_of_it if hit.id not in others]
            ranks.append(ordered.index(image_id) if image_id in ordered else DEPTH)
            if how == "detected":
                queries.append(query)
        hits[how] = {str(d): "".join("1" if rank < d else "0" for rank in ranks) for d in (1, DEPTH)}
    return {**hits, "concepts": [alike.concept(image_id) for image_id, _ in names.captions]}, queries


def _tables(queries: Sequence[Encoded], language: str) -> dict[str, float]:
    """Returns how often the right table was among those searched, and how many were."""
    read = [[one.language for one in query.readings] for query in queries]
    return {
        "first": float(np.mean([query.guesses[0][0] == language for query in queries])),
        "searched": float(np.mean([language in tables for tables in read])),
        "tables": float(np.mean([len(tables) for tables in read])),
    }


def loss(views: Mapping[str, Values]) -> tuple[float, float, float]:
    """Returns by how many points R@1 changes when the language is not told, with its 95 % interval over concepts.

    Args:
        views: of one view by language, as `many_run` returns them. The mean is over names; the names of one concept
            in all languages are drawn together.
    """
    changes: dict[str, list[int]] = {}
    for one in views.values():
        for concept, told, found in zip(one["concepts"], one["told"]["1"], one["detected"]["1"], strict=True):
            changes.setdefault(concept, []).append(int(found) - int(told))
    sums = np.asarray([sum(own) for own in changes.values()], dtype=np.float64)
    sizes = np.asarray([len(own) for own in changes.values()], dtype=np.float64)
    drawn = np.random.default_rng(0).multinomial(len(sums), np.full(len(sums), 1 / len(sums)), size=2000)
    means = 100 * (drawn @ sums) / (drawn @ sizes)
    return (
        float(100 * sums.sum() / sizes.sum()),
        float(np.quantile(means, 0.025)),
        float(np.quantile(means, 0.975)),
    )
