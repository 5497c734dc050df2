"""What a language looks like in letters: counts of short letter sequences, learned from captions.

Idea: detectors made for sentences know neither the words of a gallery nor every language that people teach. The
captions that teach a language also show how it is written; counting sequences of one to four letters in them is enough
to tell it from others, takes a moment, and more captions only add to the counts.

Formula: the chance of a letter c after the letters h, by interpolated Witten-Bell smoothing (Bell, Cleary and Witten,
Text Compression, 1990), is P(c|h) = (count(hc) + types(h) P(c|h')) / (count(h) + types(h)) with h' = h without its
first letter; below the empty h every letter has the chance 1 / ALPHABET. A text's likelihood is the product over its
letters and the spaces after its words.

Profiles belong to an encoder and travel in its version, so that they go live, and back, with the token tables.
"""

from __future__ import annotations

import io
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from model_updates.surprise import Surprise

ORDER = 4  # letters in the longest sequence
BITS = 16  # of a key for each letter
UNKNOWN = (1 << BITS) - 1  # number of a letter that the captions did not show
ALPHABET = 3000  # letters a language may have beyond those its captions showed
MOST_SEQUENCES = 120_000  # kept of a language; the rarest go first
SCRIPT_SHARE = 0.05  # of a language's letters that a script must have to count as its own
UNSEEN_PART, MOST_UNSEEN = (
    5,
    1000,
)  # one in so many captions, and at most so many, are read before they are learned
_MOST_OF_ONE, _MOST_UNPACKED = (
    1 << 22,
    1 << 29,
)  # bytes that an array of a profile, and all of a file, may unpack to
READ_AT_ONCE = 4096  # texts, which bounds the memory of reading many
SPACE, END = " ", "\0"
_PLAIN = {code: chr(code) if chr(code).isalpha() else SPACE for code in range(128)}

Keys = NDArray[np.uint64]


def letters_of(text: str) -> str:
    """Returns a text's words in lower case, letters and their marks alone, a space around each; "" without letters."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = (
        folded.translate(_PLAIN)
        if folded.isascii()
        else "".join(c if unicodedata.category(c)[0] in "LM" else SPACE for c in folded)
    ).split()
    return SPACE.join(["", *words, ""]) if words else ""


@lru_cache(maxsize=1 << 16)
def script_of(letter: str) -> str:
    """Returns the script of a letter by its Unicode name, such as LATIN or CJK; "" for marks that any script uses."""
    script = unicodedata.name(letter, "").split(" ")[0].split("-")[0]
    if script == "IDEOGRAPHIC":
        return "CJK"
    return "" if script in {"COMBINING", "MODIFIER"} else script


def script_shares(letters: str) -> dict[str, float]:
    """Returns which share of the letters each script has."""
    found: dict[str, int] = {}
    for letter in letters:
        script = "" if letter == SPACE else script_of(letter)
        if script:
            found[script] = found.get(script, 0) + 1
    total = sum(found.values())
    return {script: count / total for script, count in found.items()}


@dataclass(frozen=True, eq=False)
class LanguageProfile:
    """How often a language's captions show each sequence of one to four letters."""

    alphabet: NDArray[np.uint32]  # (a,) uint32 code points; the letter at position n has the number n + 1
    # (k,) uint64, sorted; the numbers of a sequence's letters, 16 bits each, the last letter lowest
    keys: Keys
    counts: NDArray[np.uint32]  # (k,) uint32, how often each sequence was seen
    # how surprising captions were before they were learned; `taught_profiles` measures it
    surprise: Surprise = Surprise()

    @classmethod
    def learned_from(cls, texts: Iterable[str]) -> LanguageProfile:
        """Counts the letter sequences of captions."""
        joined = END + END.join(filter(None, map(letters_of, texts))) + END
        points = np.frombuffer(joined.encode("utf-32-le"), dtype=np.uint32)
        alphabet = np.unique(points[points != 0])[: UNKNOWN - 1]
        codes = _numbers(alphabet, points)
        sequences, whole = _sequences(codes)
        # The space that opens a text is where reading starts, not a letter that somebody chose to write.
        whole[0, 1:] &= codes[:-1] != 0
        keys, counts = np.unique(sequences[whole], return_counts=True)
        return cls(alphabet, keys, counts.astype(np.uint32))._pruned()

    def taught(self, texts: Iterable[str]) -> LanguageProfile:
        """Returns the profile after more captions of the language."""
        fresh = LanguageProfile.learned_from(texts)
        alphabet = np.union1d(self.alphabet, fresh.alphabet)[: UNKNOWN - 1]
        both = np.concatenate([_renumbered(one.keys, one.alphabet, alphabet) for one in (self, fresh)])
        keys, place = np.unique(both, return_inverse=True)
        counts = np.bincount(place, weights=np.concatenate([self.counts, fresh.counts]), minlength=len(keys))
        return LanguageProfile(alphabet, keys, counts.astype(np.uint32), self.surprise)._pruned()

    @cached_property
    def scripts(self) -> frozenset[str]:
        """The scripts that the language is written in."""
        single = self.keys <= UNKNOWN
        letters = [chr(self.alphabet[int(key) - 1]) for key in self.keys[single]]
        found: dict[str, int] = {}
        for letter, count in zip(letters, self.counts[single].tolist(), strict=True):
            script = "" if letter == SPACE else script_of(letter)
            found[script] = found.get(script, 0) + (count if script else 0)
        total = max(1, sum(found.values()))
        return frozenset(s for s, count in found.items() if s and count / total >= SCRIPT_SHARE)

    def log_likelihood(self, letters: str) -> float:
        """Returns the natural logarithm of the chance that the language writes this text (see `letters_of`)."""
        return float(self.log_likelihoods([letters])[0])

    def log_likelihoods(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Returns (n,) what `log_likelihood` returns of each text, to the last bit; many cost little more than one."""
        found: NDArray[np.float64] = self._alone.log_likelihoods(texts)[0]
        return found

    @cached_property
    def _alone(self) -> ProfileTable:
        return ProfileTable([self])

    def entries(self, alphabet: NDArray[np.uint32]) -> _Entries:
        """Returns the chances of the sequences seen, and what beginnings leave over, in a larger alphabet."""
        contexts, place = np.unique(self.keys >> np.uint64(BITS), return_inverse=True)
        types = np.bincount(place, minlength=len(contexts))
        seen = np.bincount(place, weights=self.counts, minlength=len(contexts))
        chances = np.zeros(len(self.keys))
        orders = sum((self.keys >> np.uint64(BITS * n) != 0).astype(np.int64) for n in range(ORDER))
        for order in range(1, ORDER + 1):
            own = orders == order
            shorter = np.full(int(own.sum()), 1 / ALPHABET)
            if order > 1:
                known, at = _find(self.keys, self.keys[own] % np.uint64(1 << (BITS * (order - 1))))
                shorter = np.where(known, chances[at], shorter)
            of = place[own]
            chances[own] = (self.counts[own] + types[of] * shorter) / (seen[of] + types[of])
        keys = np.union1d(self.keys, contexts)
        found = _Entries(
            _renumbered(keys, self.alphabet, alphabet),
            np.zeros(len(keys), dtype=np.float32),
            np.ones(len(keys), dtype=np.float32),
        )
        found.chances[np.searchsorted(keys, self.keys)] = chances
        found.backoff[np.searchsorted(keys, contexts)] = types / np.maximum(1, seen + types)
        return found

    def _pruned(self) -> LanguageProfile:
        if len(self.keys) <= MOST_SEQUENCES:
            return self
        # The key grows with the order, so that of equally frequent sequences the shorter ones stay.
        kept = np.sort(np.lexsort((self.keys, -self.counts.astype(np.int64)))[:MOST_SEQUENCES])
        return replace(self, keys=self.keys[kept], counts=self.counts[kept])


class _Entries(NamedTuple):
    """Attributes: keys (k,) sorted; chances (k,), 0 where it was not seen; backoff (k,) left to shorter ones."""

    keys: Keys
    chances: NDArray[np.float32]
    backoff: NDArray[np.float32]


class ProfileTable:
    """The sequences of several profiles, sorted: one look-up reads a text by all of them."""

    def __init__(self, profiles: Sequence[LanguageProfile]) -> None:
        self._profiles = len(profiles)
        every = [np.zeros(0, dtype=np.uint32), *(profile.alphabet for profile in profiles)]
        self._alphabet = np.unique(np.concatenate(every))[: UNKNOWN - 1]
        entries = [profile.entries(self._alphabet) for profile in profiles]
        keys = np.concatenate([np.zeros(0, dtype=np.uint64), *(one.keys for one in entries)])
        order = np.argsort(keys, kind="stable")
        self._keys, starts = np.unique(keys[order], return_index=True)
        self._starts = np.append(starts, len(keys))
        # of each entry: whose it is, the chance of its sequence, and what that leaves as a beginning
        sizes = np.array([len(one.keys) for one in entries], dtype=np.int64)
        self._owners = np.repeat(np.arange(len(entries), dtype=np.uint16), sizes)[order]
        self._chances = np.concatenate([np.zeros(0, np.float32), *(one.chances for one in entries)])[order]
        self._backoff = np.concatenate([np.zeros(0, np.float32), *(one.backoff for one in entries)])[order]
        self._latest: dict[str, NDArray[np.float64]] = {}

    def log_likelihoods(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Returns (p, n) what each profile's `log_likelihood` returns of each text; many cost little more than one."""
        size = max(1, READ_AT_ONCE // max(1, self._profiles))
        blocks = [self._read(texts[at : at + size]) for at in range(0, len(texts), size)]
        found = np.concatenate([np.zeros((self._profiles, 0)), *blocks], axis=1)
        self._latest = dict(zip(texts, found.T, strict=True))
        return found

    def of(self, text: str) -> NDArray[np.float64]:
        """Returns (p,) the log-likelihoods of a text, which is not read again where it was among the latest."""
        known = self._latest.get(text)
        return self._read([text])[:, 0] if known is None else known

    def _read(self, texts: Sequence[str]) -> NDArray[np.float64]:
        # One after another with an end between: no sequence that counts reaches over it.
        points = np.frombuffer(END.join(texts).encode("utf-32-le"), dtype=np.uint32)
        keys, whole = _sequences(_numbers(self._alphabet, points))
        chances, backoff = self._looked_up(keys)
        chance = np.full((self._profiles, len(points)), 1 / ALPHABET)
        for order in range(ORDER):
            found = np.where(chances[:, order] > 0, chances[:, order], backoff[:, order] * chance)
            chance = np.where(whole[order], found, chance)
        ends = np.cumsum([len(text) + 1 for text in texts]) - 1
        # The space that opens a text is where reading starts. Each text by itself: the last bit of a logarithm may
        # depend on where in an array it stands.
        own = [slice(end - len(text) + 1, end) for text, end in zip(texts, ends.tolist(), strict=True)]
        fits = [np.log(row[text]).sum() for row in chance for text in own]
        return np.array(fits, dtype=np.float64).reshape(self._profiles, len(texts))

    def _looked_up(self, keys: Keys) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Returns of (ORDER, n) keys (p, ORDER, n) chances, 0 where unseen, and what their beginnings leave over."""
        # The empty beginning comes first: it stands before every sequence of one letter.
        asked = np.concatenate([[np.uint64(0)], keys.ravel()])
        known, place = _find(self._keys, asked)
        first = np.where(known, self._starts[place], 0)
        counts = np.where(known, self._starts[place + 1] - first, 0) if len(self._keys) else first
        at = np.repeat(np.arange(len(asked)), counts)
        entries = np.arange(len(at)) + np.repeat(first - np.cumsum(counts) + counts, counts)
        shape = (self._profiles, len(asked))
        chances, left = np.zeros(shape, dtype=np.float32), np.ones(shape, dtype=np.float32)
        chances[self._owners[entries], at] = self._chances[entries]
        left[self._owners[entries], at] = self._backoff[entries]
        wide = (self._profiles, *keys.shape)
        # What a sequence leaves is what the one without its last letter does, which ends a letter sooner.
        backoff = np.repeat(left[:, :1], keys.size, axis=1).reshape(wide)
        backoff[:, 1:, 1:] = left[:, 1:].reshape(wide)[:, :-1, :-1]
        return chances[:, 1:].reshape(wide), backoff


@lru_cache(maxsize=4)
def table_of(*profiles: LanguageProfile) -> ProfileTable:
    """Returns the table of some profiles, made once; those of the releases asked last are kept."""
    return ProfileTable(profiles)


def taught_profiles(
    profiles: Mapping[str, LanguageProfile], texts: Mapping[str, Iterable[str]]
) -> dict[str, LanguageProfile]:
    """Returns the profiles after captions of some languages; languages without a caption keep theirs."""
    fresh = {
        tag: _taught(profiles.get(tag, LanguageProfile.learned_from([])), list(captions))
        for tag, captions in texts.items()
    }
    return {**profiles, **{tag: profile for tag, profile in fresh.items() if len(profile.keys)}}


def _taught(profile: LanguageProfile, captions: list[str]) -> LanguageProfile:
    """Teaches a profile, and measures how surprising a part of the captions was before."""
    different = sorted(set(filter(None, map(letters_of, captions))))
    unseen = different[::UNSEEN_PART][:MOST_UNSEEN]
    knowing = profile.taught(set(different).difference(unseen))
    # Of a language whose captions are all the same nothing is known that could be surprised.
    unseen = unseen if len(knowing.keys) else []
    read = (
        (len(text) - 1, -float(seen))
        for text, seen in zip(unseen, knowing.log_likelihoods(unseen), strict=True)
    )
    return replace(profile.taught(captions), surprise=profile.surprise + Surprise.measured(read))


def to_bytes(profiles: Mapping[str, LanguageProfile]) -> bytes:
    """Returns profiles by language tag as one .npz file; the same profiles give the same bytes."""
    arrays = {
        f"{tag}/{name}": values
        for tag, profile in sorted(profiles.items())
        for name, values in (
            ("alphabet", profile.alphabet),
            ("keys", np.diff(profile.keys, prepend=np.uint64(0))),  # differences pack better
            ("counts", profile.counts),
            ("surprise", np.asarray(astuple(profile.surprise))),
        )
    }
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return file.getvalue()


def from_bytes(data: bytes) -> dict[str, LanguageProfile]:
    """Reads what `to_bytes` wrote.

    Raises:
        ValueError: the data are no such file, or would take more memory than profiles do.
    """
    arrays = _arrays(data)
    tags = sorted({name.rpartition("/")[0] for name in arrays})
    return {
        tag: LanguageProfile(
            arrays[f"{tag}/alphabet"],
            np.cumsum(arrays[f"{tag}/keys"], dtype=np.uint64),
            arrays[f"{tag}/counts"],
            Surprise(*arrays[f"{tag}/surprise"].tolist()) if f"{tag}/surprise" in arrays else Surprise(),
        )
        for tag in tags
    }


def _arrays(data: bytes) -> dict[str, NDArray[Any]]:
    """Returns the arrays of an .npz file; what they unpack to is counted, and what it says of that is not believed."""
    found, left = {}, _MOST_UNPACKED
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.infolist():
                with archive.open(member) as opened:
                    raw = opened.read(min(left, _MOST_OF_ONE) + 1)
                left -= len(raw)
                if len(raw) > _MOST_OF_ONE or left < 0:
                    raise ValueError(f"{member.filename[:60]} unpacks to more than a language profile has")
                found[member.filename.removesuffix(".npy")] = _array(raw)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, zlib.error) as error:
        raise ValueError(f"language profiles cannot be read: {error}") from error
    return found


def _array(raw: bytes) -> NDArray[Any]:
    file = io.BytesIO(raw)
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if dtype.kind not in "uif" or len(shape) != 1 or shape[0] * dtype.itemsize != len(raw) - file.tell():
        raise ValueError(f"language profiles have no array of {dtype} of shape {shape}")
    return np.frombuffer(raw, dtype, offset=file.tell()).copy()


def embedded_file() -> Path:
    """Returns the file of the profiles that come with the program."""
    return Path(str(resources.files("model_updates") / "assets" / "language_profiles.npz"))


@lru_cache(maxsize=1)
def _embedded() -> dict[str, LanguageProfile]:
    return from_bytes(embedded_file().read_bytes())


def base_profiles(languages: Iterable[str]) -> dict[str, LanguageProfile]:
    """Returns the profiles that come with the program, for the languages a base encoder knows; others are left out."""
    found = ((tag, _embedded().get(tag) or _embedded().get(tag.partition("-")[0])) for tag in languages)
    return {tag: profile for tag, profile in found if profile is not None}


def _numbers(alphabet: NDArray[np.uint32], points: NDArray[np.uint32]) -> Keys:
    """Returns the number of each letter: 0 for the end of a text, UNKNOWN for letters that are not in the alphabet."""
    known, place = _find(alphabet, points)
    return np.where(points == 0, 0, np.where(known, place + 1, UNKNOWN)).astype(np.uint64)


def _sequences(codes: Keys) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Returns of numbers (…, n) the keys (ORDER, …, n) of the sequences that end at each position, the shortest first.

    Beside them, of the same shape, whether each lies inside one text.
    """
    keys = np.zeros((ORDER, *codes.shape), dtype=np.uint64)
    whole = np.zeros(keys.shape, dtype=np.bool_)
    keys[0], whole[0] = codes, codes != 0
    for back in range(1, ORDER):
        keys[back] = keys[back - 1]
        keys[back, ..., back:] |= codes[..., :-back] << np.uint64(BITS * back)
        whole[back, ..., back:] = whole[back - 1, ..., back:] & whole[0, ..., :-back]
    return keys, whole


def _renumbered(keys: Keys, own: NDArray[np.uint32], alphabet: NDArray[np.uint32]) -> Keys:
    """Returns keys of an alphabet with the numbers that another, which has its letters, gives them; in their order."""
    numbers = np.concatenate([[np.uint64(0)], _numbers(alphabet, own)])
    found = np.zeros(len(keys), dtype=np.uint64)
    for back in range(ORDER):
        shift = np.uint64(BITS * back)
        found |= numbers[(keys >> shift) & np.uint64(UNKNOWN)] << shift
    return found


def _find(ordered: NDArray[Any], wanted: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Returns which values are in a sorted array, and their places there (any place where they are not)."""
    if len(ordered) == 0:
        return np.zeros(len(wanted), dtype=np.bool_), np.zeros(len(wanted), dtype=np.intp)
    place = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    return ordered[place] == wanted, place
