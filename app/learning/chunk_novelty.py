"""What is new in a chunk and what is here already: its words, languages, ways of drawing and pictures.

Nothing here holds a chunk. It lays what an upload declares beside what it looks like, so that a person sees at a glance
whether this is the chunk that was meant.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from app.home.workspace import Workspace
from app.learning.caption_languages import confidences, sample_of
from ingest.findings import Figure, Finding, Outcome
from ingest.pair import Pair
from ingest.records import ChunkRecord
from model_updates.features import trunk_features
from model_updates.search_encoder import SearchEncoder

WORDS, LANGUAGES, DOMAINS, GALLERY = "new_words", "languages_seen", "domains_seen", "known_in_gallery"
_CAPTIONS = 120  # of a language that are asked about
_PICTURES = 200  # of a domain that the router is asked about
_SHOWN = 3  # languages or domains that a sentence names
_LEAST = 0.02  # share below which what something looks like is chance


def novelty_findings(workspace: Workspace, chunk: ChunkRecord, encoder: SearchEncoder) -> list[Finding]:
    """Returns what is new in a chunk: a finding each for words, languages, domains and pictures."""
    pairs: list[Pair] = workspace.catalog.pairs(chunk=chunk.id)
    texts: dict[str, list[str]] = {}
    for pair in pairs:
        texts.setdefault(pair.language, []).append(pair.text)
    found = [_words(encoder, texts), _languages(texts), _domains(workspace, encoder, pairs), _gallery(chunk)]
    return [finding for finding in found if finding is not None]


def _words(encoder: SearchEncoder, texts: Mapping[str, Sequence[str]]) -> Finding | None:
    """Counts the words that the live encoder spells in pieces, because nobody taught them to it."""
    if encoder.vocabulary is None:
        return None
    said, figures = [], {}
    for language, own in sorted(texts.items()):
        words = encoder.vocabulary.words(sorted(set(own)), language)
        if not words:  # a foreign segmentation has pieces and no words
            continue
        new = sum(len(pieces) > 1 for pieces in words.values())
        figures[language] = round(new / len(words), 3)
        said.append(f"{language}: {new} of {len(words)} different words ({new / len(words):.0%})")
    if not said:
        return None
    sentence = f"Words that the live encoder spells in pieces, so that they are new to it. {'; '.join(said)}."
    return Finding(WORDS, Outcome.ACCEPT, sentence, dict(figures))


def _languages(texts: Mapping[str, Sequence[str]]) -> Finding | None:
    """Says which languages the captions look like, one by one, beside what was declared."""
    said, figures = [], {}
    for language, own in sorted(texts.items()):
        asked = [own[at] for at in sample_of(own)][:_CAPTIONS]
        if not asked:
            continue
        shares = _shares(_likeliest(asked, language))
        figures[language] = [f"{tag} {share:.2f}" for tag, share in shares]
        said.append(f"Declared {language}, looks like {_listed(shares)} ({len(asked)} captions)")
    if not said:
        return None
    return Finding(LANGUAGES, Outcome.ACCEPT, f"{'; '.join(said)}.", dict(figures))


def _likeliest(texts: Sequence[str], declared: str) -> list[str]:
    """Returns the likeliest language of each caption; the declared one where the detector does not know it."""
    found = confidences(texts, declared)
    if declared not in found:
        return [declared] * len(texts)
    tags = list(found)
    return [max(tags, key=lambda tag, at=at: found[tag][at]) for at in range(len(texts))]  # type: ignore[misc]


def _domains(workspace: Workspace, encoder: SearchEncoder, pairs: Sequence[Pair]) -> Finding | None:
    """Says which learned domains the pictures look like, where the encoder can tell."""
    if not encoder.can_guess_routes:
        return None
    pictures: dict[str, list[str]] = {}
    for pair in pairs:
        pictures.setdefault(pair.domain, []).append(pair.image_id)
    said, figures = [], {}
    for domain, ids in sorted(pictures.items()):
        some = list(dict.fromkeys(ids))
        some = some[:: max(1, len(some) // _PICTURES)][:_PICTURES]
        trunk = trunk_features(encoder, some, workspace.load_image, workspace.features)
        shares = _shares([route or "none that was learned" for route in encoder.guess_routes(trunk)])
        figures[domain] = [f"{name} {share:.2f}" for name, share in shares]
        said.append(f"Declared {domain}, looks like {_listed(shares)} ({len(some)} pictures)")
    return (
        Finding(DOMAINS, Outcome.ACCEPT, f"{'; '.join(said)}.".capitalize(), dict(figures)) if said else None
    )


def _gallery(chunk: ChunkRecord) -> Finding:
    """Counts the pictures that were here before, as they are or as near-copies."""
    known = chunk.images - chunk.new_images
    copies = int(chunk.report.get("copies", {}).get("of_known", 0))
    share = (known + copies) / max(1, chunk.images)
    sentence = (
        f"{known} of {chunk.images} pictures were here already, and {copies} are near-copies of such: "
        f"an overlap of {share:.0%} with what is here."
    )
    figures: dict[str, Figure] = {"pictures": chunk.images, "known": known, "near_copies": copies}
    return Finding(GALLERY, Outcome.ACCEPT, sentence, figures)


def _shares(names: Sequence[str]) -> list[tuple[str, float]]:
    return [
        (name, count / len(names))
        for name, count in Counter(names).most_common()
        if count / len(names) >= _LEAST
    ]


def _listed(shares: Sequence[tuple[str, float]]) -> str:
    shown = ", ".join(f"{name} {share:.0%}" for name, share in shares[:_SHOWN])
    return shown + (" and others" if len(shares) > _SHOWN else "")
