"""Sample chunks as ordinary uploads: a zip with pictures and a captions table."""

import io
import multiprocessing
import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from PIL import Image

from ingest.samples.emoji import EmojiNotInFont, draw_emoji, emoji_names, selection
from ingest.samples.scene_captions import caption
from ingest.samples.scene_grid import Scene
from ingest.samples.scene_painting import draw
from ingest.upload_zip import write_upload

COLUMNS = ("image", "caption", "language", "domain", "split", "group")
PICTURE_SIZE = 256
EMOJI_DOMAIN = "emoji"
# Styles that look alike enough to be one domain; every other style is a domain of its own name.
_SCENE_STYLES = frozenset({"gouache", "flat"})
# A picture takes 20 to 30 ms to draw, and 10 kB to keep: the same ones come back with every language's captions.
_KEPT_PICTURES = 4096
# Below this, starting processes (half a second each) costs more than they save.
_WORTH_PROCESSES = 200
_MOST_PROCESSES = 4


Drawing = tuple[Scene, str, int]
"""What is drawn: scene, style, seed."""

_memory: OrderedDict[Drawing, bytes] = OrderedDict()


def domain_of(style: str) -> str:
    """The domain that pictures of a style belong to: ``scenes``, or the style's own name."""
    return "scenes" if style in _SCENE_STYLES else style


def write_chunk(
    path_zip: Path,
    *,
    scenes: Sequence[Drawing],
    languages: Sequence[str],
    shuffle_captions: bool = False,
    seed: int = 0,
    domain: str | None = None,
    split: str | Callable[[Scene], str] = "",
) -> None:
    """Write a chunk ready for upload: ``images/*.webp`` and ``captions.csv`` with `COLUMNS`.

    The same arguments give the same bytes. The split column stays empty unless one is given, so ingest assigns it
    from the group, which is the scene: all pictures of one scene stay on the same side.

    Args:
        path_zip: where to write; an existing file is replaced.
        scenes: pictures as (scene, style, seed).
        languages: every picture gets one caption in each.
        shuffle_captions: give each picture the captions of another one: a chunk for the gate to reject.
        seed: chooses caption variants and the shuffling.
        domain: of all pictures; each style's own domain when None.
        split: of all pictures, or of each by its scene.

    Raises:
        ValueError: no scenes, no languages, the same picture twice, or an unknown language or style.
    """
    if not scenes or not languages:
        raise ValueError(
            f"a chunk needs scenes and languages; got {len(scenes)} scenes and {len(languages)} languages"
        )
    pictures = {f"images/{s.identity}-{style}-{n}.webp": (s, style, n) for s, style, n in scenes}
    if len(pictures) < len(scenes):
        raise ValueError("the same scene, style and seed is listed twice; list each picture once")
    spread = np.random.default_rng(seed)
    described = [scene for scene, _, _ in pictures.values()]
    if shuffle_captions:
        described = _strangers(described, spread)
    rows = [
        (
            file,
            caption(told, language, variant=int(spread.integers(3))),
            language,
            domain or domain_of(style),
            split(scene) if callable(split) else split,
            scene.identity,
        )
        for (file, (scene, style, _)), told in zip(pictures.items(), described, strict=True)
        for language in languages
    ]
    drawn = _drawn(list(pictures.values()))
    write_upload(path_zip, COLUMNS, rows, ((file, drawn[drawing]) for file, drawing in pictures.items()))


def write_emoji_chunk(path_zip: Path, font: Path, language: str = "en") -> None:
    """Write a chunk of the sample emoji under their names; all of them in the training split.

    A seventh of 200 pictures would be too few to judge anything by, so none is held out. Emoji that the font has no
    picture for are left out.

    Raises:
        ValueError: the language has no names, or the font cannot be read.
    """
    names, rows, drawn = emoji_names(language), [], {}
    for character in (c for c in selection() if c in names):
        try:
            picture = draw_emoji(character, font, PICTURE_SIZE)
        except EmojiNotInFont:
            continue
        file = f"images/emoji-{'-'.join(f'{ord(part):x}' for part in character)}.webp"
        drawn[file] = _as_webp(picture)
        rows.append((file, names[character], language, EMOJI_DOMAIN, "train", character))
    write_upload(path_zip, COLUMNS, rows, drawn.items())


def _strangers(scenes: list[Scene], rng: np.random.Generator) -> list[Scene]:
    """The same scenes in an order that gives (nearly) every picture the caption of another one."""
    order = rng.permutation(len(scenes))
    following = np.empty_like(order)
    following[order] = np.roll(order, -1)  # one cycle through all pictures: no picture keeps its place
    return [scenes[int(position)] for position in following]


def _drawn(drawings: Sequence[Drawing]) -> dict[Drawing, bytes]:
    """The encoded pictures; each is drawn once a process, many of them on several cores."""
    found = {drawing: _memory[drawing] for drawing in drawings if drawing in _memory}
    missing = [drawing for drawing in drawings if drawing not in found]
    processes = min(os.cpu_count() or 1, _MOST_PROCESSES)
    if len(missing) < _WORTH_PROCESSES or processes == 1:
        fresh = [_encoded(drawing) for drawing in missing]
    else:
        # Spawned, not forked: the caller may run threads of torch, which a fork would leave hanging.
        with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
            fresh = list(pool.map(_encoded, missing, chunksize=20))
    found |= dict(zip(missing, fresh, strict=True))
    for drawing in found:
        _memory[drawing] = found[drawing]
        _memory.move_to_end(drawing)
    while len(_memory) > _KEPT_PICTURES:
        _memory.popitem(last=False)
    return found


def _encoded(drawing: Drawing) -> bytes:
    scene, style, seed = drawing
    return _as_webp(draw(scene, style, size=PICTURE_SIZE, seed=seed))


def _as_webp(picture: Image.Image) -> bytes:
    data = io.BytesIO()
    picture.save(data, "WEBP", quality=88, method=2)
    return data.getvalue()
