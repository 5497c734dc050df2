"""The .xmp of the same name beside a picture: what a photo program writes where it leaves the picture alone."""

from collections.abc import Iterator

from ingest.facts.picture import sidecar_facts
from ingest.limits import Limits
from ingest.readers.container import Format, Row, Skipped, Told


def _captions(name: str, data: bytes, picture: str, limits: Limits) -> Iterator[Row | Skipped]:
    yield Row(name, picture, None, told=Told(facts=sidecar_facts(data)))


FORMATS = (Format(names=("XMP",), suffixes=(".xmp",), captions=_captions, may_be_other=True),)
