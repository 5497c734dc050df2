"""The homes that the protocols run on: what is uploaded into each, from the evaluation data and from drawn scenes.

| chunk | what |
|---|---|
| `names` | short names of 1,185 emoji in 36 languages on their noto picture |
| `line`, `fluent3d` | English names on the same things in two other styles |
| `lines-1` … `lines-9` | `line` in nine equal parts of neighbouring things: faces, people, animals, … |
| `photo` | English captions of photographs |
| `ink`, `chalk` | drawn scenes in two styles, English |
| `edges`, `thermal` | emoji as their edges, and in the colours of a thermal camera |
| `scene-<subject>` | drawn scenes of one subject, to learn from scratch |
| `classes` | held-out scenes whose caption is their subject: the probe |
| `reference` | drawn scenes in flat colours, neither taught nor measured |

A home of its own serves the tuning of strategies, in languages and domains that no protocol teaches. Its concepts are
the training concepts alone; a seventh of them is held out there. What it knows from the start is English on fluent3d,
which `domains` measures as unseen, with held-out concepts.

| chunk | what |
|---|---|
| `cipher` | English names in three invented languages, on fluent3d pictures |
| `negative`, `mosaic`, `relief`, `overturned` | emoji: colours turned round, cut into tiles, embossed, upside down |
| `turned-<subject>` | scenes of one subject, none of them in a protocol, in ink and chalk of turned colours |

Another does for photographs: training photographs alone, a seventh of them held out there.

| chunk | what |
|---|---|
| `photo-en` | English captions |
| `photo-qaa`, `photo-qab` | German and Portuguese ones as invented languages: letters exchanged, words turned round |

And one has `photo-qaa` alone: nothing says in English what its pictures show.

Another has pictures as features (`painted.py`). Before anything else its encoder, `perennial-tiny`, is finetuned on
`photo-en`; that is its live release, and what its sequences start from.

| chunk | what |
|---|---|
| `photo-en` | five English captions each of 2,500 photographs |
| `photo-words` | English, German, French, Arabic and Hindi captions, one each of 600 of them |
| `noto`, `fluent3d`, `line` | English names of 300 emoji, and of 60 held-out ones, in three styles |
| `fluent3d-1` … `fluent3d-5` | `fluent3d` in five equal parts of neighbouring things |

And a small one serves the quick sequences: 400 things of `names` in three languages, of `line`, and `ink` scenes.
"""

from __future__ import annotations

import csv
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import photographs_data
from painted import painted
from PIL import Image, ImageFilter, ImageOps
from real_input_data import UploadRow, emoji_rows, emoji_splits, photo_rows, write_upload
from real_input_runs import run_update

from app.desk.jobs import UpdateRequest
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.learning import adding, beginning, going_live, standing
from ingest.intake import IntakeOptions
from ingest.samples.chunks import Drawing, write_chunk
from ingest.samples.scene_grid import SUBJECTS, Scene, all_scenes, held_out

TINY, PHOTO = "perennial-tiny", "perennial-photo"
TUNING, PHOTO_TUNING, ALONE = "tuning", "tuning-photo", "tuning-alone"
QUICK, PAINTED = "quick", "painted"
MODELS = {
    "tiny": TINY,
    "photo": PHOTO,
    TUNING: TINY,
    PHOTO_TUNING: PHOTO,
    ALONE: PHOTO,
    PAINTED: TINY,
    QUICK: TINY,
}
"""The encoder of each home."""
ORDER = "en it de fil tr uk nl bn he fi sv qu fa mi fr el zh id sw no hi da te th pt ru ro pl hr es vi ar cs ko ja hu"
LANGUAGES = tuple(ORDER.split())
"""In the order of CLL-CLIP's experiments."""
CIPHERS = {"qaa": 5, "qab": 11, "qac": 17}
CIPHERED_PHOTOS = {"qaa": "de", "qab": "pt"}
LETTERS = "abcdefghijklmnopqrstuvwxyz"
PHOTOS = 1_200
TAUGHT_PHOTOS = 2_500
SCENES_A_SUBJECT = 150
SCENES_A_STYLE = 1_000
STREAM_STYLES, STROKE_STYLES = ("gouache", "flat"), ("ink", "chalk")
TURNED = 6  # subjects in turned colours
CLASS_PICTURES = 360
GROWING = 9  # parts of the growing gallery
KNOWN_PHOTOS, WORDED_PHOTOS, PAINTED_THINGS = 2_500, 600, 300
PHOTO_LANGUAGES = ("en", "de", "fr", "ar", "hi")
KNOWN_CHUNK = "photo-en"
KNOWN = {"epochs": 4, "batch_size": 128, "learning_rate": 0.001}
"""How the encoder of pictures as features learns English captions of photographs, before anything is compared."""
QUICK_CONCEPTS = 400
QUICK_LANGUAGES = ("en", "de", "ja")

Say = Callable[[str], None]
Write = Callable[[Path], Path]


def home_of(name: str, data: Path, work: Path, say: Say, only: Collection[str] | None = None) -> Settings:
    """Returns the settings of a home, made first where there is none; a stopped one goes on with what it lacks.

    `only` names the chunks that are enough; all of the home's when None.
    """
    settings = Settings(home=work / "homes" / name, device="cpu")
    if not settings.home.exists():
        settings.home.parent.mkdir(parents=True, exist_ok=True)
        beginning.initialise(settings, model=MODELS[name])
    with Workspace.open(settings) as workspace:
        there = {chunk.name.removesuffix(".zip") for chunk in workspace.catalog.chunks()}
        for chunk, write in _uploads(name, data, work).items():
            is_wanted = only is None or chunk in only or (name == PAINTED and chunk == KNOWN_CHUNK)
            if chunk in there or not is_wanted:
                continue
            with tempfile.TemporaryDirectory(dir=work) as place:
                source = write(Path(place) / chunk)
                report = adding.add_chunk(workspace, source, IntakeOptions(), by="benchmark").report
            say(f"home {name}: {chunk}, {report.new_pairs} new pairs")
        if name == PAINTED and going_live.live_release(workspace)[1].manifest.strategy is None:
            _know_photographs(workspace, say)
    return settings


def _know_photographs(workspace: Workspace, say: Say) -> None:
    """Finetunes on English captions of photographs, and makes that live whatever the gate says."""
    chunk = next(chunk.id for chunk in workspace.catalog.chunks() if chunk.name == KNOWN_CHUNK)
    # To an encoder that reads no features yet, some captions look moved.
    standing.accept(workspace, chunk, why="benchmark", by="benchmark")
    request = UpdateRequest(chunk, "finetune", KNOWN, by="benchmark")
    outcome = run_update(workspace, request)
    if outcome.release is not None and outcome.commit is None:
        going_live.promote(workspace, outcome.release, why="benchmark", by="benchmark", force=True)
    say(f"English photographs: {outcome.sentence}")


def _uploads(home: str, data: Path, work: Path) -> dict[str, Write]:
    if home == "photo":
        return {
            f"photo-{language}": partial(
                _rows_upload, partial(photo_rows, data, language, photos=TAUGHT_PHOTOS)
            )
            for language in ("en", "cs", "hi", "uk")
        }
    if home == TUNING:
        return _tuning_uploads(data)
    if home == PHOTO_TUNING:
        return _photo_tuning_uploads(data)
    if home == ALONE:
        return {"photo-qaa": _photo_tuning_uploads(data)["photo-qaa"]}
    if home == PAINTED:
        return _painted_uploads(data, work / "painted")
    if home == QUICK:
        return _quick_uploads(data)
    splits = emoji_splits(data)
    names = partial(emoji_rows, data, splits)
    uploads: dict[str, Write] = {
        "names": partial(_rows_upload, lambda: [row for tag in LANGUAGES for row in names(tag, ("noto",))]),
        "line": partial(_rows_upload, lambda: names("en", ("line",))),
        "fluent3d": partial(_rows_upload, lambda: names("en", ("fluent3d",))),
        "photo": partial(_rows_upload, lambda: photo_rows(data, "en", photos=PHOTOS)),
        "edges": partial(_changed_upload, lambda: names("en", ("noto",)), "edges", edges),
        "thermal": partial(_changed_upload, lambda: names("en", ("noto",)), "thermal", thermal),
    }
    for number, keys in enumerate(_neighbours(list(splits), GROWING), start=1):
        uploads[f"lines-{number}"] = partial(
            _rows_upload, partial(_in_groups, partial(names, "en", ("line",)), keys)
        )
    for style in ("ink", "chalk"):
        uploads[style] = partial(_scene_upload, partial(_some_scenes, style), style)
    for subject in SUBJECTS:
        uploads[f"scene-{subject}"] = partial(
            _scene_upload, partial(_of_subject, subject, STREAM_STYLES), None
        )
    uploads["classes"] = _classes_upload
    uploads["reference"] = partial(_scene_upload, lambda: _some_scenes("flat"), "flat")
    return uploads


def _tuning_uploads(data: Path) -> dict[str, Write]:
    splits = {key: _tuning_split(key) for key, split in emoji_splits(data).items() if split != "test"}
    names = partial(emoji_rows, data, splits, "en")
    uploads: dict[str, Write] = {
        "cipher": partial(_rows_upload, lambda: list(_ciphers(names(("fluent3d",))))),
        "negative": partial(_changed_upload, lambda: names(("noto",)), "negative", negative),
        "mosaic": partial(_changed_upload, lambda: names(("noto",)), "mosaic", _mosaic),
    }
    uploads["relief"] = partial(_changed_upload, lambda: names(("noto",)), "relief", _relief)
    uploads["overturned"] = partial(_changed_upload, lambda: names(("noto",)), "overturned", ImageOps.flip)
    for subject in SUBJECTS[:TURNED]:
        uploads[f"turned-{subject}"] = partial(_turned_upload, subject)
    return uploads


def _photo_tuning_uploads(data: Path) -> dict[str, Write]:
    def rows(language: str) -> list[UploadRow]:
        found = photo_rows(data, language, photos=TAUGHT_PHOTOS)
        return [replace(row, split=_tuning_split(row.group)) for row in found if row.split == "train"]

    def ciphered(tag: str, language: str) -> list[UploadRow]:
        return [_ciphered(row, tag) for row in rows(language)]

    invented = {
        f"photo-{tag}": partial(_rows_upload, partial(ciphered, tag, language))
        for tag, language in CIPHERED_PHOTOS.items()
    }
    return {"photo-en": partial(_rows_upload, partial(rows, "en")), **invented}


def _quick_uploads(data: Path) -> dict[str, Write]:
    names = partial(emoji_rows, data, emoji_splits(data, QUICK_CONCEPTS))
    return {
        "names": partial(
            _rows_upload, lambda: [row for tag in QUICK_LANGUAGES for row in names(tag, ("noto",))]
        ),
        "line": partial(_rows_upload, lambda: names("en", ("line",))),
        "ink": partial(_scene_upload, lambda: _some_scenes("ink")[:QUICK_CONCEPTS], "ink"),
    }


def _painted_uploads(data: Path, made: Path) -> dict[str, Write]:
    def of(rows: Callable[[], Sequence[UploadRow]], domain: str) -> Write:
        def write(folder: Path) -> Path:
            return write_upload(folder, changed_rows(rows(), domain, painted, made / domain))

        return write

    def english() -> list[UploadRow]:
        return photographs_data.photo_rows(data, "en", KNOWN_PHOTOS)

    def words() -> list[UploadRow]:
        return [row for tag in PHOTO_LANGUAGES for row in photo_rows(data, tag, photos=WORDED_PHOTOS)]

    splits = emoji_splits(data, PAINTED_THINGS)
    names = partial(emoji_rows, data, splits, "en")
    uploads = {KNOWN_CHUNK: of(english, "photo"), "photo-words": of(words, "photo")}
    for style in ("noto", "fluent3d", "line"):
        uploads[style] = of(partial(names, (style,)), style)
    for number, keys in enumerate(_neighbours(list(splits), 5), start=1):
        uploads[f"fluent3d-{number}"] = of(
            partial(_in_groups, partial(names, ("fluent3d",)), keys), "fluent3d"
        )
    return uploads


def _in_groups(rows: Callable[[], Sequence[UploadRow]], keys: Collection[str]) -> list[UploadRow]:
    return [row for row in rows() if row.group in keys]


def _tuning_split(key: str) -> str:
    place = int(hashlib.sha256(f"tuning:{key}".encode()).hexdigest(), 16) % 100
    return "test" if place < 14 else "validation" if place < 20 else "train"


# ------------------------------------------------------------------------------------------------- emoji, photographs


def _rows_upload(rows: Callable[[], Sequence[UploadRow]], folder: Path) -> Path:
    return write_upload(folder, rows())


def _ciphers(rows: Sequence[UploadRow]) -> Iterator[UploadRow]:
    """Names in three languages that nobody speaks, and the English."""
    yield from rows
    for tag in CIPHERS:
        for row in rows:
            yield _ciphered(row, tag)


def _ciphered(row: UploadRow, tag: str) -> UploadRow:
    """Returns a caption in a language that nobody speaks: letters exchanged, words in the opposite order."""
    shift = CIPHERS[tag]
    table = str.maketrans(LETTERS, LETTERS[shift:] + LETTERS[:shift])
    return replace(
        row, caption=" ".join(reversed(row.caption.lower().translate(table).split())), language=tag
    )


def _changed_upload(
    rows: Callable[[], Sequence[UploadRow]],
    domain: str,
    change: Callable[[Image.Image], Image.Image],
    folder: Path,
) -> Path:
    """Writes an upload whose pictures are made from others, in a domain of their own."""
    return write_upload(folder, changed_rows(rows(), domain, change, folder.with_name(f"{domain}-pictures")))


def changed_rows(
    rows: Sequence[UploadRow], domain: str, change: Callable[[Image.Image], Image.Image], made: Path
) -> list[UploadRow]:
    """Returns rows on pictures made from theirs, in a domain; those that `made`, a folder, has not are drawn."""
    made.mkdir(parents=True, exist_ok=True)
    changed = []
    for row in rows:
        picture = made / f"{row.picture.stem}.png"
        if not picture.exists():
            with Image.open(row.picture) as opened:
                change(_flat(opened)).save(picture)
        changed.append(replace(row, picture=picture, domain=domain))
    return changed


def _flat(picture: Image.Image) -> Image.Image:
    clear = picture.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", clear.size, "white"), clear).convert("RGB")


def negative(picture: Image.Image) -> Image.Image:
    """Returns a picture with its colours turned round."""
    return ImageOps.invert(picture)


def edges(picture: Image.Image) -> Image.Image:
    """Returns the edges of what a picture shows, dark on white."""
    return ImageOps.invert(picture.convert("L").filter(ImageFilter.FIND_EDGES)).convert("RGB")


def thermal(picture: Image.Image) -> Image.Image:
    """Returns a picture in the colours of a thermal camera."""
    return ImageOps.colorize(picture.convert("L"), "navy", "yellow", mid="crimson")


def _relief(picture: Image.Image) -> Image.Image:
    return picture.convert("L").filter(ImageFilter.EMBOSS).convert("RGB")


def _mosaic(picture: Image.Image) -> Image.Image:
    tiles = picture.resize((18, 18), Image.Resampling.BOX)
    return tiles.resize(picture.size, Image.Resampling.NEAREST)


def _neighbours(keys: Sequence[str], parts: int) -> list[frozenset[str]]:
    """Returns keys in the order of the data, where one Unicode group follows another, in equal parts."""
    ends = [round(len(keys) * number / parts) for number in range(parts + 1)]
    return [frozenset(keys[start:end]) for start, end in pairwise(ends)]


# ------------------------------------------------------------------------------------------------------- drawn scenes


def _by_hash(scenes: Sequence[Scene], salt: str) -> list[Scene]:
    return sorted(scenes, key=lambda scene: hashlib.sha256(f"{salt}:{scene.identity}".encode()).hexdigest())


def _some_scenes(style: str) -> list[Drawing]:
    return [(scene, style, 0) for scene in _by_hash(list(all_scenes()), style)[:SCENES_A_STYLE]]


def _of_subject(subject: str, styles: tuple[str, str]) -> list[Drawing]:
    own = _of_one(subject)[:SCENES_A_SUBJECT]
    return [(scene, styles[number % 2], 7) for number, scene in enumerate(own)]


def _of_one(subject: str) -> list[Scene]:
    return _by_hash([scene for scene in all_scenes() if scene.subject == subject], "subject")


def _turned_upload(subject: str, folder: Path) -> Path:
    """Scenes of a subject that no stream shows and that are held out nowhere, a seventh held out here."""
    own = [scene for scene in _of_one(subject)[SCENES_A_SUBJECT:] if not held_out(scene)][:SCENES_A_SUBJECT]
    drawn = folder.with_name(f"{folder.name}-drawn.zip")
    drawings = [(scene, STROKE_STYLES[number % 2], 7) for number, scene in enumerate(own)]
    write_chunk(
        drawn,
        scenes=drawings,
        languages=["en"],
        domain="scenes",
        split=lambda scene: _tuning_split(scene.identity),
    )
    shutil.unpack_archive(drawn, folder)
    for path in folder.rglob("*.webp"):
        with Image.open(path) as opened:
            turned = negative(opened.convert("RGB"))
        turned.save(path, lossless=True)
    return folder


def _scene_upload(drawings: Callable[[], Sequence[Drawing]], domain: str | None, path: Path) -> Path:
    path = path.with_suffix(".zip")
    write_chunk(path, scenes=drawings(), languages=["en"], domain=domain or "scenes", split=_split)
    return path


def drawn_upload(style: str, place: Path) -> Path:
    """Writes an upload of a style's scenes, the held-out combinations as its test split; returns its path."""
    return _scene_upload(lambda: _some_scenes(style), style, place)


def _split(scene: Scene) -> str:
    if held_out(scene):
        return "test"
    return "validation" if int(hashlib.sha256(scene.identity.encode()).hexdigest(), 16) % 100 < 6 else "train"


def _classes_upload(folder: Path) -> Path:
    """Held-out scenes, each with its subject alone as caption."""
    scenes = [scene for scene in _by_hash(list(all_scenes()), "classes") if held_out(scene)][:CLASS_PICTURES]
    drawn = folder.with_name("classes-drawn.zip")
    write_chunk(
        drawn, scenes=[(s, "gouache", 11) for s in scenes], languages=["en"], domain="scenes", split="test"
    )
    shutil.unpack_archive(drawn, folder)
    table = folder / "captions.csv"
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with table.open("w", encoding="utf-8", newline="") as file:
        written = csv.DictWriter(file, list(rows[0]))
        written.writeheader()
        for row in rows:
            written.writerow(row | {"caption": row["group"].partition("-")[0]})
    return folder
