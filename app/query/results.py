"""An answer as files: a table that spreadsheets open, and a zip of the pictures with that table beside them."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Sequence

from app.desk.errors import BadQuery
from app.home.workspace import Workspace
from ingest.errors import StoreDamaged, UnknownImage
from ingest.pair import ImageId
from ingest.report import guarded

MOST_PICTURES = 100
"""Pictures in a zip: each is drawn anew, which takes a core some tens of milliseconds."""
HEADER = ("rank", "score", "id", "domain", "chunk", "width", "height", "captions", "taken", "seen at")
_LARGEST_SIDE = 1600

Found = Sequence[tuple[ImageId, float | None]]
"""Id and score of each picture, best first; without a score where nothing was looked for."""


def picture_to_look_at(workspace: Workspace, image_id: ImageId) -> bytes:
    """Returns a picture as WebP: drawn anew, so that nothing hidden in the uploaded file goes out."""
    picture = workspace.blobs.image(image_id, side=_LARGEST_SIDE)
    picture.thumbnail((_LARGEST_SIDE, _LARGEST_SIDE))
    data = io.BytesIO()
    picture.save(data, "WEBP", quality=88, method=2)
    return data.getvalue()


def table(workspace: Workspace, found: Found, *, places: bool, first: int = 0) -> bytes:
    """Returns the pictures as CSV, a row each; no cell is one that a spreadsheet would run as a formula.

    `places` says whether who asks may know where they were seen.
    """
    shown = workspace.catalog.shown([image_id for image_id, _ in found], places=places)
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(HEADER)
    for rank, (image_id, score) in enumerate(found, start=first + 1):
        one = shown.get(image_id)
        told: list[object] = [""] * 7
        if one is not None:
            spoken = "\n".join(f"{said.language}: {said.text}" for said in one.captions)
            seen = "\n".join(source.path for source in one.sources)
            told = [guarded(one.domain), one.chunk_id, one.width, one.height]
            told += [guarded(spoken), one.taken, guarded(seen)]
        writer.writerow((rank, "" if score is None else f"{score:.6f}", image_id, *told))
    # With a mark at its beginning a spreadsheet takes it for UTF-8.
    return text.getvalue().encode("utf-8-sig", "replace")


def archive(workspace: Workspace, found: Found, *, places: bool, first: int = 0) -> bytes:
    """Returns a zip of the pictures, named by rank and id, and of their table.

    A picture that is gone from the store, or damaged in it, leaves a text in its place that says so; the others are
    there all the same.

    Raises:
        BadQuery: they are too many for one.
    """
    if len(found) > MOST_PICTURES:
        raise BadQuery(
            f"A zip holds up to {MOST_PICTURES} pictures, and these are {len(found)}. Ask for fewer, page by page."
        )
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_STORED) as file:  # WebP does not get any smaller
        file.writestr("results.csv", table(workspace, found, places=places, first=first))
        for rank, (image_id, _) in enumerate(found, start=first + 1):
            name = f"{rank:04}-{image_id[:12]}"
            try:
                file.writestr(f"{name}.webp", picture_to_look_at(workspace, image_id))
            except (UnknownImage, StoreDamaged) as error:
                file.writestr(f"{name}.txt", f"{error}\n")
    return data.getvalue()
