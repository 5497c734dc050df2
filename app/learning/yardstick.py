"""What a candidate is measured by: pairs that have earned it, in the views that a searcher meets.

Only pairs of *trusted* chunks enter old slices: the probes, what the live release has learned, and what a person
accepted as measuring material. A chunk's own held-out pairs judge its own update until it went live. Nothing of this is
stored: a rollback or a withdrawn chunk shrinks the yardstick by itself.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from app.desk.probes import DOMAIN, probe_chunks
from app.home.releases import ReleaseRecord
from app.home.workspace import Workspace
from app.learning.caption_languages import in_another_language
from app.learning.sampling import by_hash, sampled
from ingest.pair import Pair, SliceKey, Split
from ingest.standing import WITHDRAWN
from model_updates.evaluation import View
from model_updates.measurement import HeldOut
from model_updates.pairs import Fold

MIXED_PICTURES = 5_000
"""Pictures of the mixed gallery: many enough that a language pushed aside shows, few enough to be ranked in seconds."""
MEMORY_PICTURES = 200  # a slice
ALL_VIEWS = (View.OWN, View.MIXED, View.MEMORY)


def trusted_chunks(workspace: Workspace, *releases: ReleaseRecord) -> frozenset[str]:
    """Returns the ids of the chunks that measure: probes, what releases learned, what a person accepted for it."""
    learned = {chunk for release in releases for chunk in release.manifest.chunks}
    chunks = workspace.catalog.standings()
    learned |= probe_chunks(workspace.catalog).intersection(chunk.id for chunk in chunks[:1])
    return frozenset(
        chunk.id
        for chunk in chunks
        if chunk.standing != WITHDRAWN and (chunk.id in learned or chunk.measures)
    )


def own_trusted(workspace: Workspace, *releases: ReleaseRecord) -> frozenset[str]:
    """Returns the trusted chunks but the probes: what people are shown is of their own pictures."""
    return trusted_chunks(workspace, *releases) - probe_chunks(workspace.catalog)


def usable_chunks(workspace: Workspace, *releases: ReleaseRecord) -> frozenset[str]:
    """Returns the ids of the chunks whose pairs may stand beside others: trusted ones, and those nobody objects to.

    Where an update is replayed those that could then, and what the releases learned.
    """
    if workspace.beside is not None:
        learned = {chunk for release in releases for chunk in release.manifest.chunks}
        return workspace.beside | {
            c.id for c in workspace.catalog.standings() if c.id in learned and c.standing != WITHDRAWN
        }
    unobjected = {c.id for c in workspace.catalog.standings() if c.standing in {"new", "accepted"}}
    return trusted_chunks(workspace, *releases) | unobjected


def held_out(
    workspace: Workspace, languages: Collection[str], chunks: Collection[str], *, is_new: bool = False
) -> list[HeldOut]:
    """Returns the slices of some chunks in some languages, each among its domain's held-out pictures of them.

    `chunks` are ids of trusted ones, or of the one that is taught, whose slices are then new.
    """
    by_slice: dict[SliceKey, list[tuple[str, str]]] = {}
    for pair in workspace.catalog.pairs(split=Split.TEST, chunks=chunks):
        if pair.language in languages:
            by_slice.setdefault(SliceKey(pair.language, pair.domain), []).append((pair.image_id, pair.text))
    galleries = {
        domain: tuple(workspace.catalog.test_images(domain, chunks=chunks))
        for domain in sorted({key.domain for key in by_slice})
    }
    groups = workspace.catalog.groups({image_id for said in by_slice.values() for image_id, _ in said})
    return [
        HeldOut(
            key,
            galleries[key.domain],
            tuple(said),
            is_new=is_new,
            groups=tuple(groups[image_id] for image_id, _ in said),
        )
        for key, said in sorted(by_slice.items())
    ]


@dataclass(frozen=True)
class Yardstick:
    """What is measured while a release is live."""

    workspace: Workspace  # opened for reading
    release: ReleaseRecord  # what is live
    taught: str | None = None  # id of the chunk that is taught, if any
    # ids of its pictures that something beside its own word shows to be what it says (see `gate.examined.borne_out`)
    borne_out: frozenset[str] = frozenset()

    @cached_property
    def _misread(self) -> frozenset[tuple[str, str, str]]:
        """Language, picture and text of the taught captions that read as another language than they declare.

        What is live may read those already, so that they would show no gain and hide that of the others.
        """
        if self.taught is None:
            return frozenset()
        profiles = self.workspace.open_searcher(self.release.version).profiles
        by_language: dict[str, list[Pair]] = {}
        for pair in self.workspace.catalog.pairs(chunk=self.taught):
            by_language.setdefault(pair.language, []).append(pair)
        found: set[tuple[str, str, str]] = set()
        for language, pairs in by_language.items():
            seen = in_another_language([pair.text for pair in pairs], language, profiles)
            if seen is not None:
                found.update(
                    (language, pairs[at].image_id, pairs[at].text) for at in np.flatnonzero(seen.rows)
                )
        return frozenset(found)

    @cached_property
    def _beside(self) -> frozenset[str]:
        """The chunks whose captions say which pictures are as right as the right one."""
        taught = frozenset[str]() if self.taught is None else {self.taught}
        return usable_chunks(self.workspace, self.release) | taught

    @cached_property
    def _trusted(self) -> frozenset[str]:
        return trusted_chunks(self.workspace, self.release)

    @cached_property
    def _known(self) -> set[str]:
        """The pictures of trusted chunks, by id."""
        return self.workspace.catalog.ids_where(chunks=self._trusted)

    def slices(self, languages: Collection[str], new: Collection[SliceKey]) -> list[HeldOut]:
        """Returns everything an update is judged by: old slices of some languages, and those that the chunk taught."""
        return self._finished(self._own(languages, ALL_VIEWS) + self._new(new))

    def old(self, languages: Collection[str], *, views: Collection[View] = ALL_VIEWS) -> list[HeldOut]:
        """Returns the slices of trusted pairs in some views."""
        return self._finished(self._own(languages, views), views)

    def folds(self, languages: Collection[str], folds: Sequence[Fold]) -> Iterator[list[HeldOut]]:
        """Yields for each fold the slices of its examined pairs, own and mixed, without what its copy learned.

        Each looks among the fold's pictures and those trusted and held out of the domain, or among everything; no
        picture of a thing that the copy trains on is in either gallery, for it would stand where its copy put it.
        """
        old = self._own(languages, ALL_VIEWS)
        everything = self._mixed_gallery(old)
        trusted: dict[str, set[str]] = {}
        for one in old:
            trusted.setdefault(one.key.domain, set()).update(one.gallery)
        chunk = {pair.image_id for fold in folds for pair in (*fold.train, *fold.validation, *fold.examined)}
        groups = self.workspace.catalog.groups(chunk.union(everything, *trusted.values()))
        for fold in folds:
            learned = {groups[pair.image_id] for pair in (*fold.train, *fold.validation)}
            shown = {pair.image_id for pair in fold.examined}
            mixed = tuple(i for i in sorted(shown.union(everything)) if groups[i] not in learned)
            alike, domains = Alike(mixed, groups), self._domains(mixed)
            by_slice: dict[SliceKey, list[tuple[str, str]]] = {}
            own: dict[str, set[str]] = {domain: set(ids) for domain, ids in trusted.items()}
            for pair in fold.examined:
                own.setdefault(pair.domain, set()).add(pair.image_id)
                if (pair.language, pair.image_id, pair.text) in self._misread:
                    continue
                by_slice.setdefault(SliceKey(pair.language, pair.domain), []).append(
                    (pair.image_id, pair.text)
                )
            found = []
            for key, pairs in sorted(by_slice.items()):
                captions = tuple(pairs)
                alone = tuple(i for i in sorted(own[key.domain]) if groups[i] not in learned)
                things = tuple(groups[image_id] for image_id, _ in captions)
                neutral = alike.neutral(captions, self._said(key.language, mixed))
                found.append(HeldOut(key, alone, captions, is_new=True, groups=things))
                found.append(HeldOut(key, mixed, captions, View.MIXED, True, things, neutral, domains))
            yield found

    def _own(self, languages: Collection[str], views: Collection[View]) -> list[HeldOut]:
        # What a chunk says of itself shows nothing of what was known, though it was accepted to measure others.
        found = held_out(self.workspace, languages, self._trusted - {self.taught})
        return found + (self._memory(languages, self._trusted) if View.MEMORY in views else [])

    def _new(self, keys: Collection[SliceKey]) -> list[HeldOut]:
        """The chunk's own pairs, among its held-out pictures and the trusted ones of their domain."""
        if self.taught is None:
            return []
        languages = {key.language for key in keys}
        own = held_out(self.workspace, languages, [self.taught], is_new=True)
        known = {*self._trusted, self.taught}
        domains = {one.key.domain for one in own}
        galleries = {
            domain: tuple(self.workspace.catalog.test_images(domain, chunks=known)) for domain in domains
        }
        slices = []
        for one in own:
            language = one.key.language
            read = [at for at, said in enumerate(one.captions) if (language, *said) not in self._misread]
            if one.key in keys and (read or not one.captions):
                captions = tuple(one.captions[at] for at in read)
                groups = tuple(one.groups[at] for at in read)
                slices.append(HeldOut(one.key, galleries[one.key.domain], captions, one.view, True, groups))
        return slices

    def _memory(self, languages: Collection[str], trusted: Collection[str]) -> list[HeldOut]:
        """A fixed sample of what was trained on: one caption of each of up to 200 pictures a slice."""
        catalog = self.workspace.catalog
        pairs = catalog.pairs(split=Split.TRAIN, chunks=trusted)
        taught: set[Pair] = set()
        if self.taught is not None:
            taught = set(catalog.pairs(split=Split.TRAIN, chunks=[self.taught]))
        gallery = set(catalog.gallery_ids())
        by_slice: dict[SliceKey, dict[str, list[str]]] = {}
        for pair in pairs:
            if pair.language in languages and pair.image_id in gallery and pair not in taught:
                key = SliceKey(pair.language, pair.domain)
                by_slice.setdefault(key, {}).setdefault(pair.image_id, []).append(pair.text)
        chosen = {key: sampled(texts, MEMORY_PICTURES) for key, texts in sorted(by_slice.items())}
        groups = catalog.groups({image_id for ids in chosen.values() for image_id in ids})
        return [
            HeldOut(
                key,
                (),
                tuple((image_id, min(by_slice[key][image_id], key=by_hash)) for image_id in ids),
                View.MEMORY,
                groups=tuple(groups[image_id] for image_id in ids),
            )
            for key, ids in chosen.items()
        ]

    def _finished(self, slices: Sequence[HeldOut], views: Collection[View] = ALL_VIEWS) -> list[HeldOut]:
        """Puts memory slices into the mixed gallery, and every held-out slice a second time.

        Probes are among themselves there, too: nobody can find them, so pictures of people may stand before them.
        """
        wanted = [one for one in slices if one.view in views]
        if not {View.MIXED, View.MEMORY} & set(views):
            return wanted
        gallery = self._mixed_gallery(slices)
        groups = self.workspace.catalog.groups(gallery)
        alike = {
            shown: Alike(shown, groups)
            for shown in {gallery, *(one.gallery for one in slices if is_probe(one))}
        }
        said = {tag: self._said(tag, gallery) for tag in sorted({one.key.language for one in wanted})}
        domains = {shown: self._domains(shown) for shown in alike}
        mixed = [(one, View.MIXED) for one in slices if one.view is View.OWN and View.MIXED in views]
        memory = [(one, View.MEMORY) for one in wanted if one.view is View.MEMORY]
        shown_by = {
            (tag, shown): self._shown(tag, shown, groups)
            for tag, shown in {
                (one.key.language, one.gallery if is_probe(one) else gallery)
                for one, _ in (*mixed, *memory)
                if not one.is_new
            }
        }
        found = []
        for one, view in (*mixed, *memory):
            shown, tag = one.gallery if is_probe(one) else gallery, one.key.language
            same = alike[shown].neutral(one.captions, said[tag])
            full = replace(one, gallery=shown, view=view, neutral=same, domains=domains[shown])
            found.append(full if one.is_new else self._by_things(full, groups, *shown_by[tag, shown]))
        return [one for one in wanted if one.view is View.OWN] + found

    def _shown(
        self, tag: str, gallery: Sequence[str], groups: Mapping[str, str]
    ) -> tuple[dict[str, set[str]], tuple[int, ...]]:
        """Returns what trusted captions in a language say of a gallery's pictures, and the number of what each shows.

        Pictures with the same captions show the same, and so do those of a group.
        """
        catalog = self.workspace.catalog
        said = catalog.captions_in(tag, gallery, chunks=self._trusted)
        said |= catalog.captions_in(tag, self.borne_out.intersection(gallery), chunks=self._beside)
        names = {image_id: " ".join(sorted(set(texts))) for image_id, texts in said.items()}
        several = Counter(names.values())
        numbers: dict[tuple[str, str], int] = {}
        things = []
        for image_id in gallery:
            name = names.get(image_id, "")
            if several[name] > 1:
                key = ("said", name)
            else:
                key = ("group", groups[image_id]) if image_id in self._known else ("alone", image_id)
            things.append(numbers.setdefault(key, len(numbers)))
        return {image_id: set(texts) for image_id, texts in said.items()}, tuple(things)

    def _by_things(
        self,
        one: HeldOut,
        groups: Mapping[str, str],
        said: Mapping[str, Collection[str]],
        things: tuple[int, ...],
    ) -> HeldOut:
        """Has a known slice ranked by things: what a chunk that is not trusted says of a picture is a claim alone."""
        same, claimed = {}, {}
        for number, places in one.neutral.items():
            text = one.captions[number][1]
            group = groups[one.captions[number][0]]
            sure = tuple(
                place
                for place in places
                for other in [one.gallery[place]]
                if text in said.get(other, ()) or (other in self._known and groups[other] == group)
            )
            same[number], claimed[number] = sure, tuple(sorted(set(places).difference(sure)))
        return replace(
            one,
            neutral={number: places for number, places in same.items() if places},
            claimed={number: places for number, places in claimed.items() if places},
            things=things,
        )

    def _said(self, language: str, gallery: Sequence[str]) -> dict[str, set[str]]:
        """Returns by text the pictures of which it is a caption in a language."""
        found: dict[str, set[str]] = {}
        captions = self.workspace.catalog.captions_in(language, gallery, chunks=self._beside)
        for image_id, texts in captions.items():
            for text in texts:
                found.setdefault(text, set()).add(image_id)
        return found

    def _domains(self, gallery: Sequence[str]) -> tuple[str, ...]:
        records = self.workspace.catalog.images(gallery)
        return tuple(records[image_id].domain for image_id in gallery)

    def _mixed_gallery(self, slices: Iterable[HeldOut]) -> tuple[str, ...]:
        """All pictures that are looked for or held out beside them, and of the gallery a fixed sample."""
        needed = {i for one in slices for i in (*one.gallery, *(image_id for image_id, _ in one.captions))}
        others = [i for i in self.workspace.catalog.gallery_ids() if i not in needed]
        return tuple(sorted(needed)) + tuple(sampled(others, MIXED_PICTURES - len(needed)))


def is_probe(one: HeldOut) -> bool:
    """Says whether a slice is one of the drawn probes."""
    return one.key.domain == DOMAIN and not one.is_new and bool(one.gallery)


class Alike:
    """Which pictures of a gallery are as right as the right one: the same caption, or the same thing.

    `groups` names the thing that each picture shows.
    """

    def __init__(self, gallery: Sequence[str], groups: Mapping[str, str]) -> None:
        self._places = {image_id: place for place, image_id in enumerate(gallery)}
        self._groups = groups
        self._of_group: dict[str, list[int]] = {}
        for image_id, place in self._places.items():
            self._of_group.setdefault(groups[image_id], []).append(place)

    def neutral(
        self, captions: Sequence[tuple[str, str]], said: Mapping[str, Collection[str]]
    ) -> dict[int, tuple[int, ...]]:
        """Returns by number of a caption the places beside its own that never count as ahead.

        `captions` are of pictures in the gallery, `said` has by text the pictures of which it is a caption.
        """
        found = {}
        for number, (image_id, text) in enumerate(captions):
            same = {self._places[other] for other in said.get(text, ()) if other in self._places}
            places = same.union(self._of_group[self._groups[image_id]]) - {self._places[image_id]}
            if places:
                found[number] = tuple(sorted(places))
        return found
