"""From the parts of a query to the vectors that are looked up.

A query of several parts is looked up as one vector, the weighted sum of theirs. Cosines of two pictures spread much
wider over a gallery than those of a text and pictures, so in a plain sum any picture would outvote any text. Each part
is therefore divided by how widely its own cosines spread over a sample of the gallery: a weight says how many standard
deviations of a part count as much as one of another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.desk.errors import BadQuery
from app.language.detection import Guess, Reading
from app.query.grammar import Kind, Term, parse
from app.query.question import QueryPicture
from app.query.reading import read_query, words
from app.query.snapshot import Snapshot, Vectors
from ingest.errors import BadImage
from ingest.pair import image_id_of
from ingest.sentence import phrase
from ingest.spans import span
from model_updates.routes import BASE
from model_updates.search_encoder import unit

_SAMPLE = 512
_LARGEST_SIDE = 1024  # of a picture that is asked by: some megabytes while its question waits
_PATIENCE = 5.0  # seconds that it waits until others' pictures are decoded
_NARROWEST = 1e-4  # a spread below this is rounding
_SHORTEST = 1e-6  # of a sum: parts that cancel out leave nothing to look for


@dataclass(frozen=True)
class Encoded:
    """A query ready to be looked up."""

    vectors: Vectors  # (r, dim) float32 unit rows, the whole query in each reading
    parts: Vectors  # (r, p, dim) float32 unit rows of its parts
    # in which languages its texts were read; one that says nothing where there is no text
    readings: tuple[Reading, ...]
    guesses: tuple[Guess, ...]  # behind the readings
    note: str  # about the language, for people
    text: str  # all that should be in the picture, in words
    items: tuple[str, ...]  # ids of the gallery's pictures that it names
    scale: float = 1.0  # what cosines with `vectors` are multiplied by to be scores


def query_terms(query: str, *, longest: int) -> tuple[Term, ...]:
    """Reads a query of at most so many characters.

    Raises:
        BadQuery: it is longer, or the grammar does not know it.
    """
    if len(query) > longest:
        raise BadQuery(
            phrase(
                "The query has {count} characters; at most {most} are read. Shorten it.",
                count=len(query),
                most=longest,
            )
        )
    return parse(query)


def encode(
    snapshot: Snapshot, terms: Sequence[Term], pictures: Mapping[str, QueryPicture], language: str
) -> Encoded:
    """Returns the vectors of a query under a snapshot's encoder.

    Raises:
        BadQuery: a part cannot be used, or the parts cancel out.
    """
    texts = {n: words(term.value) for n, term in enumerate(terms) if term.kind is Kind.TEXT}
    chosen: tuple[Reading, ...] = (Reading("", 1.0),)
    guesses: tuple[Guess, ...] = ()
    note = ""
    if texts:
        with span("detect"):
            chosen, guesses, note = read_query(snapshot, " ".join(texts.values()), language)
    items = {n: _item(snapshot, term) for n, term in enumerate(terms) if term.kind is Kind.ITEM}
    languages = tuple(one.language for one in chosen)
    rows = []
    with span("encode"):
        for n, term in enumerate(terms):
            if n in texts:
                rows.append(snapshot.texts.read(snapshot.encoder, texts[n], languages))
            else:
                vector = _vector(snapshot, term, pictures, items.get(n))
                rows.append(np.repeat(vector[None], len(chosen), axis=0))
        parts = np.stack(rows, axis=1).astype(np.float32)
        vectors = _joined(snapshot, parts, [term.weight for term in terms])
    wanted = " ".join(text for n, text in texts.items() if terms[n].weight > 0)
    return Encoded(vectors, parts, chosen, guesses, note, wanted, tuple(items.values()))


def _joined(snapshot: Snapshot, parts: Vectors, weights: Sequence[float]) -> Vectors:
    """Returns the (r, dim) unit sums of (r, p, dim) parts."""
    if not np.isfinite(parts).all():
        raise BadQuery("A part of this query could not be encoded; try other words or another picture.")
    if len(weights) == 1:
        return parts[:, 0] * np.float32(np.sign(weights[0]))
    sample = sample_of(snapshot)
    spread = np.ones(parts.shape[:2], dtype=np.float32)
    if len(sample) > 1:
        spread = np.maximum((parts @ sample.T).std(axis=2), _NARROWEST)
    summed = (parts * (np.asarray(weights, dtype=np.float32) / spread)[..., None]).sum(axis=1)
    if (np.linalg.norm(summed, axis=1) < _SHORTEST * np.abs(weights).max() / spread.max()).any():
        raise BadQuery(phrase("The parts of this query cancel each other out; nothing is left to look for."))
    return unit(summed)


def sample_ids(snapshot: Snapshot) -> list[str]:
    """Returns at most 512 pictures, spread over the whole gallery."""
    return snapshot.generation.spread(_SAMPLE)


def sample_of(snapshot: Snapshot) -> Vectors:
    """Returns the (n, dim) float32 unit vectors of the sample."""
    return snapshot.generation.vectors(sample_ids(snapshot))


def _vector(
    snapshot: Snapshot, term: Term, pictures: Mapping[str, QueryPicture], item: str | None
) -> Vectors:
    if item is not None:
        row = snapshot.generation.vectors([item])[0]
    elif term.kind is Kind.IMAGE:
        row = _picture_vector(snapshot, pictures[term.value])
    else:
        row = _given(term, snapshot.generation.dim)
    return np.asarray(row, dtype=np.float32)


def _picture_vector(snapshot: Snapshot, picture: QueryPicture) -> Vectors:
    """Returns (dim,) float32: of a picture of the gallery its own, which finds it first whatever it looks like.

    Any other takes the route that it looks like: nobody has stated its domain.
    """
    if snapshot.among([picture.id]):
        stored: Vectors = snapshot.generation.vectors([picture.id])[0]
        return stored
    encoder, images = snapshot.encoder, [picture.image]
    trunk = encoder.trunk_features(images)
    guessed = encoder.guess_routes(trunk)[0]
    # What looks like nothing taught is found on the route that such pictures take.
    route = encoder.nearest_routes(trunk)[0] if guessed == BASE and encoder.can_be_quiet else guessed
    rows = unit(encoder.projected(trunk)) if route == BASE else encoder.encode_images(images, route)
    return np.asarray(rows[0], dtype=np.float32)


def _given(term: Term, dim: int) -> Vectors:
    row = np.asarray(term.vector, dtype=np.float64)
    if row.shape != (dim,):
        raise BadQuery(f"The embedding has {row.size} numbers; this release's have {dim}.")
    with np.errstate(over="ignore", invalid="ignore"):
        length = float(np.linalg.norm(row))
    if not np.isfinite(length) or length == 0:
        raise BadQuery("The embedding has a number that is not finite, or is all zeros.")
    return (row / length).astype(np.float32)


def _item(snapshot: Snapshot, term: Term) -> str:
    """Returns the id of the picture that begins so."""
    shown = snapshot.among([term.value]) or snapshot.beginning(term.value, 2)
    if len(shown) == 1:
        return shown[0]
    none = f"No picture of release {snapshot.release.id} has an id that begins"
    said = "Several pictures have ids that begin" if shown else none
    at = f" (character {term.at + 1})" if term.at else ""
    raise BadQuery(
        f"{said} with {term.value[:24]}{at}. Take the id from a result, or put it in quotation marks to "
        "search for the words.",
        at=term.at,
    )


def decoded(term: Term, data: bytes) -> QueryPicture:
    """Returns a picture to search with.

    Raises:
        BadQuery: it cannot be decoded safely.
        DecoderBusy: others' pictures are being decoded, for longer than a query waits.
    """
    from ingest.decoding import decode_apart

    try:
        found = decode_apart(data, largest=_LARGEST_SIDE, patience=_PATIENCE)
        return QueryPicture(found.image, image_id_of(data), found.width, found.height)
    except BadImage as error:
        raise BadQuery(
            phrase("{name} cannot be searched with. {why}", name=term.value, why=error), at=term.at
        ) from error
