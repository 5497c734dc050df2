"""What a home's bucket lacks of what the catalog says lies there, and what of it this machine can put back.

All is listed, and sizes are compared; nothing is fetched for it. What comes damaged to a machine is noted in the bucket
by that machine (`app.home.shared`), and counts as missing for all until a sound file took its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from app.home.durable import sha256_of
from app.home.folder import Home
from app.home.shared import FOLDER, NOTED, files_in, folders_of, sizes_in
from ingest import packs
from ingest.catalog import Catalog
from ingest.errors import ObjectsUnreachable
from ingest.objects import Objects
from ingest.sentence import joined, phrase


@dataclass(frozen=True, slots=True)
class Lacking:
    """What a bucket lacks."""

    said: str = ""  # sentences; or that it cannot be asked; empty where all is there
    copies: Mapping[str, Path] = field(default_factory=dict)  # sound files of this machine, by sha256


def lacking(home: Home, catalog: Catalog) -> Lacking:
    """Looks what the bucket of a home lacks; nothing where there is no bucket."""
    if home.objects_address is None:
        return Lacking()
    manifests, known = catalog.published.manifests(), set(catalog.packs.names())
    objects = Objects(home.objects_address)
    try:
        there = {
            name: size for folder in (FOLDER, packs.FOLDER, NOTED) for name, size in objects.sizes(folder)
        }
    except ObjectsUnreachable as error:
        return Lacking(joined((phrase("Whether everything is in the bucket is not known."), str(error))))
    # What was written anew or taken back meanwhile has gone.
    known &= set(catalog.packs.names())
    published = set(catalog.published.manifests())
    torn = {name: set(_missing(one, there)) for name, one in manifests.items() if name in published}
    lost = sum(f"{packs.FOLDER}/{name}" not in there for name in known)
    files = set[str]().union(*torn.values())
    copies = dict(_copies(home, manifests, files))
    facts = {"lost": lost, "packs": len(known), "torn": sum(map(bool, torn.values())), "published": len(torn)}
    said = _said(facts, objects.address, can_mend=not lost and files == copies.keys())
    return Lacking(said, copies)


def _said(facts: Mapping[str, int], address: str, *, can_mend: bool) -> str:
    packs_lost = phrase(
        "{lost} of {packs} packs of pictures are missing in the bucket {address}.", address=address, **facts
    )
    files_lost = phrase(
        "Files of {torn} of {published} versions, indexes and releases are missing or damaged in the bucket "
        "{address}.",
        address=address,
        **facts,
    )
    what_to_do = phrase(
        "Look whether the address is right. `perennial repair` on a machine that has such files puts them back; what "
        "no machine has, put back of what the bucket keeps of what was deleted."
    )
    parts = [packs_lost] * bool(facts["lost"]) + [files_lost] * bool(facts["torn"])
    return joined(parts if can_mend else [*parts, what_to_do])


def put_back(home: Home, catalog: Catalog) -> str:
    """Puts back what the bucket lacks and this machine has; says so, and what it lacks then."""
    found = lacking(home, catalog)
    if not found.copies:
        return found.said
    address = str(home.objects_address)
    try:
        folders_of(home, address).put_back(found.copies)
    except ObjectsUnreachable as error:
        return str(error)
    said = phrase(
        "{count} files were put back in the bucket {address}.", count=len(found.copies), address=address
    )
    return joined(filter(None, [said, lacking(home, catalog).said]))


def _missing(manifest: bytes, there: Mapping[str, int]) -> Iterator[str]:
    """Yields the sha256 of the files of a manifest that are not there as they were published."""
    sizes = sizes_in(manifest)
    for digest in files_in(manifest).values():
        size = there.get(f"{FOLDER}/{digest}")
        if size is None or size != sizes.get(digest, size) or f"{NOTED}/{digest}" in there:
            yield digest


def _copies(home: Home, manifests: Mapping[str, bytes], files: set[str]) -> Iterator[tuple[str, Path]]:
    for name, manifest in manifests.items() if files else ():
        for shelf in (home.versions, home.generations, home.releases):
            for file, digest in files_in(manifest).items():
                path = shelf / name / file
                with suppress(OSError):  # what cannot be read is no sound copy
                    if digest in files and path.is_file() and sha256_of(path) == digest:
                        yield digest, path
