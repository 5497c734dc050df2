"""What an answer shows of its pictures, read for a whole page by one statement."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import TextClause, text

from ingest.pair import Caption, ImageId
from ingest.sources import PictureSource
from ingest.tables import TableQueries, of_json

ALL = -1
# As text: to build it anew for each page costs several times what SQLite takes to answer it. A picture's captions are
# looked up by picture and language: it may have hundreds.
_WORDS = {
    "sqlite": {
        "rows": "json_group_array(json_array({}))",
        "values": "json_each({})",
        "asked": "json_each(:ids) AS asked",
        "place": "instr(:languages, json_quote(language))",
        "all": "LIMIT -1",  # or the inner order would not be kept
    },
    "postgresql": {
        "rows": "CAST(coalesce(json_agg(json_build_array({})), '[]') AS TEXT)",
        "values": "json_array_elements_text(CAST({} AS JSON)) AS each(value)",
        "asked": "json_array_elements_text(CAST(:ids AS JSON)) WITH ORDINALITY AS asked(value, key)",
        "place": "strpos(CAST(:languages AS TEXT), CAST(to_json(language) AS TEXT))",
        "all": "",
    },
}


def _statement(rows: str, values: str, asked: str, place: str, all: str) -> TextClause:
    captions = f"""(SELECT {rows.format("language, text")} FROM (
        SELECT language, text FROM captions WHERE image = images.seq {{of}} AND NOT withdrawn
        ORDER BY {{first}} language, seq LIMIT :captions) AS said)"""
    spoken = captions.format(
        of=f"AND language IN (SELECT value FROM {values.format(':languages')})", first=f"{place},"
    )
    told = rows.format('kind, place, name, size, modified, "key", gone, CAST(fields AS TEXT)')
    return text(f"""
    SELECT images.id, images.domain, chunks.id, images.width, images.height, images.taken,
      coalesce(nullif({spoken}, '[]'), {captions.format(of="", first="")}),
      (SELECT {told} FROM (
        SELECT * FROM sources WHERE image_id = images.id AND :places ORDER BY gone != '', place, name {all}) AS seen)
    FROM {asked} JOIN images ON images.id = asked.value JOIN chunks ON chunks.seq = images.chunk
    ORDER BY asked.key""")


_STATEMENTS = {name: _statement(**words) for name, words in _WORDS.items()}


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
        dialect = self._engine.dialect.name
        most = None if captions == ALL and dialect == "postgresql" else captions
        with self._engine.connect() as connection:
            rows = connection.execute(_STATEMENTS[dialect], lists | {"captions": most, "places": places})
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
