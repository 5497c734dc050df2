"""What an answer shows of its pictures, read for a whole page by one statement."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ingest.pair import Caption, ImageId
from ingest.sources import PictureSource
from ingest.tables import TableQueries, of_json

ALL = -1
# As text: to build it anew for each page costs several times what SQLite takes to answer it. A picture's captions are
# looked up by picture and language: it may have hundreds.
_CAPTIONS = """(SELECT json_group_array(json_array(language, text)) FROM (
    SELECT language, text FROM captions WHERE image = images.seq {of} AND NOT withdrawn
    ORDER BY {first} language, seq LIMIT :captions))"""
_SPOKEN = _CAPTIONS.format(
    of="AND language IN (SELECT value FROM json_each(:languages))",
    first="instr(:languages, json_quote(language)),",
)
_STATEMENT = f"""
SELECT images.id, images.domain, chunks.id, images.width, images.height, images.taken,
  coalesce(nullif({_SPOKEN}, '[]'), {_CAPTIONS.format(of="", first="")}),
  (SELECT json_group_array(json_array(kind, place, name, size, modified, "key", gone, fields)) FROM (
    SELECT * FROM sources WHERE image_id = images.id AND :places ORDER BY gone != '', place, name LIMIT -1))
FROM json_each(:ids) AS asked JOIN images ON images.id = asked.value JOIN chunks ON chunks.seq = images.chunk
"""


@dataclass(frozen=True, slots=True)
class PictureShown:
    """A picture of a page: facts, captions and places."""

    domain: str
    chunk_id: str
    width: int  # in pixels, upright
    height: int
    taken: str  # as in `ImageRecord`
    captions: tuple[Caption, ...]
    sources: tuple[PictureSource, ...]  # those that are there first, then by place


class PageQueries(TableQueries):
    """The part of `Catalog` that is about pages of answers."""

    def shown(
        self,
        ids: Sequence[ImageId],
        *,
        languages: Sequence[str] = (),
        captions: int = ALL,
        places: bool = True,
    ) -> dict[ImageId, PictureShown]:
        """Returns what is shown of those pictures that are known, also of withdrawn ones.

        Args:
            ids: of the pictures.
            languages: captions in these come in this order, without others; of a picture that has none in them, all
                come by language.
            captions: so many of each picture.
            places: whether the sources are told.
        """
        lists = {"ids": json.dumps(list(ids)), "languages": json.dumps(list(languages))}
        with self._engine.connect() as connection:
            rows = connection.exec_driver_sql(_STATEMENT, lists | {"captions": captions, "places": places})
            return {
                image_id: PictureShown(
                    domain, chunk, width, height, taken, _captions(image_id, said), _sources(image_id, seen)
                )
                for image_id, domain, chunk, width, height, taken, said, seen in rows
            }


def _captions(image_id: ImageId, said: str) -> tuple[Caption, ...]:
    return tuple(Caption(image_id, language, text) for language, text in json.loads(said))


def _sources(image_id: ImageId, seen: str) -> tuple[PictureSource, ...]:
    # Most owners tell nothing, and a page has many.
    return tuple(
        PictureSource(
            image_id, kind, place, name, size, modified, key, gone, of_json(told) if told != "{}" else {}
        )
        for kind, place, name, size, modified, key, gone, told in json.loads(seen)
    )
