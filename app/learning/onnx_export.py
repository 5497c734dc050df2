"""A release's encoder as a folder for programs without Perennial or torch: graphs, tokenizers, a loader, a model card.

A graph for each way that texts or pictures are read; token tables are data: one array of rows, which the loader looks
up, and one tokenizer file a table, whose ids are the rows. A second text tower is a graph of its own (``second.*``).
What was written is read back by the loader and compared with the encoder; a folder that gives other vectors is not
left.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from app.desk.releases import Exported
from app.desk.slices import recalls_of
from app.home.durable import sha256_of
from app.home.enough import require_room
from app.home.releases import ReleaseRecord
from app.home.workspace import Workspace
from app.learning.transfer import require_new_folder
from ingest.sentence import phrase
from model_updates.encoder import Encoder
from model_updates.errors import NotPortable
from model_updates.inserts import Router
from model_updates.kept_tokenizer import portable
from model_updates.parts.second_reading import SecondReading
from model_updates.routes import BASE
from model_updates.towers import token_table
from model_updates.vocabulary import SHARED, Vocabulary
from model_updates.whole_graphs import LOADER, require_portable, write_picture_graph, write_text_graph

CLOSEST = 1e-4
"""Numbers of two vectors that are to be the same differ by at most this; torch and onnxruntime differ by 1e-6."""
_TEXTS = ["a", "two red boats on a lake, seen from the shore", "zwei rote Boote", "दो लाल नावें", "一只狗"]
SHARED_RULES = "tokenizers/shared.json"
Tell = Callable[[str], None]
_TEXT = """# {release} as ONNX

Pictures and texts in one space, for search: near is alike. Written by `perennial export onnx`.

| | |
|---|---|
| encoder | {architecture}, {dim} numbers a vector, of length 1 |
| version | {version}{taught} |
| languages | {languages} |{second}
| domains with a module of their own | {domains} |
| own picture among the first ten, of held-out captions, percent | {recalls} |

```python
from PIL import Image
from load import pictures, texts  # needs numpy, onnxruntime, pillow and tokenizers

cosines = texts(["two red boats"], "en") @ pictures([Image.open("a.jpg")]).T
```

`load.py` is the whole of it, to be used or read. `facts.json` says which graph and which tokenizer read a language,
which graph sees a domain, how pictures are prepared, and the fingerprint of each. Vectors of one fingerprint can be
compared; they are those of the release's index but for the last digits.

## What is not here

- Telling the language of a text and the domain of a picture: name them, or they are read as most are.{guessed}
- What a cosine is worth (strong, weak, nothing), re-ranking, and what it takes to teach the encoder further.
{runtime}- Colour profiles, raw files and HEIC: give pictures in sRGB that Pillow opens. Pictures are turned upright.

## Licence

The weights are {weights}. What was taught to them comes from the captions and pictures of whoever exported this.
`load.py` is Apache-2.0.
"""
_OWN_OPERATORS = (
    "- `second.onnx` for other runtimes than onnxruntime, whose own operators multiply its 4-bit matrices.\n"
)
_OWN = {
    "perennial-photo": "those of EfficientNet-Lite2 and the multilingual Universal Sentence Encoder, Apache-2.0",
    "perennial-tiny": "trained by this project on drawn scenes, Apache-2.0",
}


def export_to_onnx(
    workspace: Workspace, release: str, target: Path, tell: Tell = lambda file: None
) -> Exported:
    """Writes a release's encoder into a folder that is not there yet, or empty; `tell` is told each file.

    Raises:
        UnknownRelease, ReleaseDamaged, NotPortable, NoSpace: nothing is left in the folder.
        UsageProblem: something is there already, or the folder above it is not.
    """
    record = workspace.releases.verify_release(release)
    require_new_folder(target)
    encoder = workspace.open_encoder(record.version).copy().to("cpu")
    require_portable(encoder)
    size = sum(value.nbytes for value in encoder.state().values())
    require_room(phrase("This export"), target.parent, disk=2 * size)
    target.mkdir(exist_ok=True)
    try:
        facts = write_folder(encoder, target, record.manifest.languages, tell)
        facts |= {"release": record.id, "version": record.version, "architecture": encoder.architecture}
        (target / "facts.json").write_text(json.dumps(facts, ensure_ascii=False, indent=1), encoding="utf-8")
        (target / "README.md").write_text(_card(record, encoder, facts), encoding="utf-8")
        tell("load.py")
        require_same(encoder, target, facts)
        shutil.rmtree(target / "__pycache__", ignore_errors=True)  # from reading it back
    except BaseException:
        shutil.rmtree(target)
        raise
    written = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    return Exported(record.id, target, written, sha256_of(target / "facts.json"))


def write_folder(encoder: Encoder, folder: Path, learned: tuple[str, ...], tell: Tell) -> dict[str, Any]:
    """Writes everything but `facts.json` and the card into an empty folder; returns those facts.

    Raises:
        NotPortable: a part of the encoder cannot be written.
    """
    require_portable(encoder)
    shutil.copyfile(LOADER, folder / "load.py")
    (folder / "tokenizers").mkdir()
    second = {} if encoder.second is None else {"second": encoder.second.write(folder)}
    also = second["second"]["languages"] if second else {}
    return {
        "dim": encoder.dim,
        **(
            _whole_texts(encoder, folder)
            if encoder.vocabulary is None
            else _rows(encoder, encoder.vocabulary, folder)
        ),
        **second,
        "pictures": asdict(encoder.preprocessing),
        "languages": _text_side(encoder, (*learned, *also), folder, tell),
        "domains": _image_side(encoder, folder, tell),
    }


def _rows(encoder: Encoder, vocabulary: Vocabulary, folder: Path) -> dict[str, int]:
    """Writes the rows of the token table; returns how the loader marks and fills up a text."""
    table = token_table(encoder.model)
    np.save(folder / "rows.npy", np.asarray(table.detach() if table is not None else ()))
    return {
        "start": vocabulary.start_row,
        "end": vocabulary.end_row,
        "pad": vocabulary.pad_row,
        "context": vocabulary.context_length,
    }


def _whole_texts(encoder: Encoder, folder: Path) -> dict[str, int]:
    """Writes a tokenizer that is not ours, which does all of that itself; returns what padding counts as."""
    rules, pad = portable(encoder.foreign_tokenizer) or (None, 0)
    if rules is not None:
        rules.save(str(folder / SHARED_RULES))
    return {"pad": pad}


def _text_side(encoder: Encoder, learned: tuple[str, ...], folder: Path, tell: Tell) -> dict[str, Any]:
    """Writes what reads texts; returns by language, and by "" for all others, what the loader has to know."""
    vocabulary = encoder.vocabulary
    texts = [one for one in encoder.inserts if one.tower == "text"]
    owners = {one.owner.name for one in texts if one.runs_in_tower} - {""}
    found: dict[str, Any] = {}
    tables = {} if vocabulary is None else vocabulary.tables
    for language in dict.fromkeys((SHARED, *learned, *tables, *sorted(owners))):
        fingerprint = encoder.text_fingerprint(language)
        found[language] = {"graph": None, "fingerprint": fingerprint}
        if not encoder.tower_reads(language):
            if encoder.second is None or not (trust := encoder.second.trust(language)):
                continue
            found[language]["trust"] = trust
        name = SHARED if vocabulary is None else vocabulary.table_name(language)
        graph = f"text-{language}.onnx" if language in owners else "text.onnx"
        tokenizer = f"tokenizers/{name}.json" if name else SHARED_RULES
        if not (folder / graph).exists():
            tell(graph)
            write_text_graph(encoder, language, folder / graph)
        if vocabulary is not None and not (folder / tokenizer).exists():
            vocabulary.portable(name).save(str(folder / tokenizer))
        words = tables[name].words if name in tables else {}
        found[language] |= {"graph": graph, "tokenizer": tokenizer, "words": words}
        if vocabulary is not None:  # what stands for a text without a word
            found[language]["empty"] = vocabulary.encode([""], language)[0][1:-1]
    for insert in texts:
        if isinstance(insert, SecondReading):
            name = f"second.by.{insert.owner.name}.npy"
            np.save(folder / name, insert.by)
            found[insert.owner.name] |= {"beside": name, "length": float(insert.length)}
    return found


def _image_side(encoder: Encoder, folder: Path, tell: Tell) -> dict[str, Any]:
    """Writes what sees pictures; returns by domain, and by "" for all others, what the loader has to know."""
    found = {}
    for domain in (BASE, *encoder.image_routes):
        graph = f"image-{domain}.onnx" if domain else "image.onnx"
        tell(graph)
        write_picture_graph(encoder, domain, folder / graph)
        found[domain] = {"graph": graph, "fingerprint": encoder.image_fingerprint(domain)}
    return found


def require_same(encoder: Encoder, folder: Path, facts: dict[str, Any]) -> None:
    """Compares what the folder's own loader gives with the encoder, on every domain and language.

    Of those that a second tower alone reads every eighth is tried, with several texts: they differ by a row of its
    offsets.

    Raises:
        NotPortable: they differ.
    """
    loader = loaded(folder)
    noise = np.random.default_rng(0).integers(0, 256, (3, 70, 100, 3), dtype=np.uint8)
    pictures = [Image.fromarray(one) for one in noise]
    alone = [
        language for language, read in facts["languages"].items() if not read["graph"] or "trust" in read
    ]
    own = facts["languages"].keys() - set(alone)
    for count, languages in ((1, own), (len(_TEXTS), own | set(alone[::8]))):
        for language in languages:
            wanted = encoder.encode_texts(_TEXTS[:count], language)
            _compare(loader.texts(_TEXTS[:count], language), wanted, f"texts in {language or 'any language'}")
        for domain in facts["domains"]:
            wanted = encoder.encode_images(pictures[:count], domain)
            _compare(
                loader.pictures(pictures[:count], domain), wanted, f"pictures of {domain or 'any domain'}"
            )


def _compare(found: NDArray[np.float32], wanted: NDArray[np.float32], what: str) -> None:
    apart = float(np.abs(found - wanted).max())
    if not apart <= CLOSEST:
        raise NotPortable(f"as ONNX {what} get other vectors (numbers differ by up to {apart:.2g})")


def loaded(folder: Path) -> Any:
    """Returns the loader of a folder as a module."""
    spec = spec_from_file_location("perennial_onnx_folder", folder / "load.py")
    if spec is None or spec.loader is None:
        raise NotPortable(f"{folder / 'load.py'} cannot be loaded")
    loader = module_from_spec(spec)
    spec.loader.exec_module(loader)
    return loader


def _card(record: ReleaseRecord, encoder: Encoder, facts: dict[str, Any]) -> str:
    said = record.manifest
    recalls = ", ".join(f"{language} {percent:.1f}" for language, percent in recalls_of(said.slices).items())
    guessed = any(isinstance(one, Router) for one in encoder.inserts)
    weights = _OWN.get(encoder.architecture, "under the licence of the weights that the home was made with")
    second = ", ".join(facts["second"]["languages"]) if encoder.second else ""
    return _TEXT.format(
        release=record.id,
        version=record.version,
        architecture=encoder.architecture,
        dim=encoder.dim,
        taught=f", taught last by `{said.strategy}`" if said.strategy else "",
        languages=", ".join(said.languages),
        domains=", ".join(encoder.image_routes) or "none",
        recalls=recalls or "not measured",
        guessed=" The release guesses the domain of pictures where nobody states it." if guessed else "",
        second=f"\n| read by the second text tower | {second} |" if second else "",
        runtime=_OWN_OPERATORS if second else "",
        weights=f"{weights}, and multilingual-e5-small, MIT" if second else weights,
    )
