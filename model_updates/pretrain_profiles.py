"""Makes the language profiles that come with the program (see `language_profiles`): those of base encoders' languages.

    python -m model_updates.pretrain_profiles --emoji DATA/emoji

They are counts of letter sequences in the short names of emoji that `perennial-tiny` was trained on, in each language
that an embedded encoder knows from the start, and for English also each different keyword, once: how often they repeat
says how emoji are tagged and not how English is written (docs/log.md).
"""

import argparse
import hashlib
from pathlib import Path

from ingest.pair import BASE_LANGUAGE
from model_updates.language_profiles import embedded_file, taught_profiles, to_bytes
from model_updates.pretrain_data import read_emoji

LANGUAGES = ("ar", "de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr", "zh")


def captions(emoji: Path, language: str) -> list[str]:
    """Returns the texts a profile is learned from; no name of a held-out concept is among them."""
    concepts = [concept for concept in read_emoji(emoji, language) if not concept.held_out]
    texts = [concept.name for concept in concepts]
    if language == BASE_LANGUAGE:
        texts += sorted({word for concept in concepts for word in concept.keywords} - set(texts))
    return texts


def main() -> None:
    """Writes the asset and says what is in it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--emoji", type=Path, required=True, help="folder of the emoji data")
    parser.add_argument("--out", type=Path, default=embedded_file())
    arguments = parser.parse_args()
    texts = {language: captions(arguments.emoji, language) for language in LANGUAGES}
    data = to_bytes(taught_profiles({}, texts))
    arguments.out.write_bytes(data)
    counted = ", ".join(f"{language} {len(lines)}" for language, lines in texts.items())
    print(f"{len(data):,} bytes, sha256 {hashlib.sha256(data).hexdigest()[:12]}; texts: {counted}")  # noqa: T201


if __name__ == "__main__":
    main()
