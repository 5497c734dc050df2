"""Vectors of texts and pictures without Perennial or torch; needs numpy, onnxruntime, pillow and tokenizers."""

import json
import os
from collections.abc import Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps
from tokenizers import Encoding, Tokenizer

os.environ.setdefault(
    "ORT_DISABLE_TELEMETRY", "1"
)  # read when the library is loaded, which calls home otherwise
from onnxruntime import InferenceSession

HERE = Path(__file__).parent
opened = cache(lambda name: InferenceSession(HERE / name, providers=["CPUExecutionProvider"]))
tokenizer = cache(lambda name: Tokenizer.from_file(str(HERE / name)))
facts = cache(lambda: json.loads((HERE / "facts.json").read_text(encoding="utf-8")))
table = cache(lambda: np.load(HERE / "rows.npy", mmap_mode="r"))
packed = cache(lambda: np.load(HERE / "second.rows.npy", mmap_mode="r"))
offsets = cache(lambda: np.load(HERE / "second.offsets.npy"))
strange = cache(lambda: np.load(HERE / "second.first.npy"))
normal = cache(
    lambda: str.maketrans(json.loads((HERE / "tokenizers/second.normal.json").read_text(encoding="utf-8")))
)


def texts(every: Sequence[str], language: str = "") -> Any:
    """Returns the unit vector of each text, (n, dim) float32; a language that it does not know is read as most are."""
    read = facts()["languages"].get(language, facts()["languages"][""])
    if "second" not in facts():
        return _first(every, read)
    beside = _second(every, language, **facts()["second"])
    if not read["graph"]:
        first = np.zeros((len(every), facts()["dim"] - beside.shape[1]), np.float32)
    elif trust := read.get("trust"):  # the first tower reads this language as one that it does not know
        first = trust * _unit(_first(every, read) - strange()[facts()["second"]["languages"][language]])
    else:
        first = _first(every, read)
    if "beside" in read:  # a taught language: the second tower corrected, the first as far as it was taught
        by, first = np.load(HERE / read["beside"]), read["length"] * first
        beside = facts()["second"]["share"] * _unit(beside + beside @ by.astype(np.float32))
    return _unit(np.concatenate([first, beside], axis=1))


def _first(every: Sequence[str], read: dict[str, Any]) -> Any:
    rules, is_whole = tokenizer(read["tokenizer"]), "context" not in facts()
    encoded = rules.encode_batch(list(every), add_special_tokens=is_whole)
    if is_whole:  # the tokenizer marks, cuts and fills up texts, and the graph has its token table
        ids, kept = (np.array([getattr(one, name) for one in encoded]) for name in ("ids", "attention_mask"))
        return opened(read["graph"]).run(None, {"tokens": np.where(kept, ids, facts()["pad"])})[0]
    start, end, pad, most = (facts()[name] for name in ("start", "end", "pad", "context"))
    rows = [[start, *(_rows(one, read["words"]) or read["empty"])[: most - 2], end] for one in encoded]
    ends = np.array([len(row) - 1 for row in rows])
    padded = np.array([row + [pad] * (max(ends) + 1 - len(row)) for row in rows])
    return opened(read["graph"]).run(None, {"embedded": table()[padded], "ends": ends})[0]


def pictures(images: Sequence[Image.Image], domain: str = "") -> Any:
    """Returns the unit vector of each picture, (n, dim) float32; a domain that it does not know is seen as most are."""
    graph = facts()["domains"].get(domain, facts()["domains"][""])["graph"]
    pixels = [_pixels(ImageOps.exif_transpose(one).convert("RGB"), **facts()["pictures"]) for one in images]
    return opened(graph).run(None, {"pixels": np.stack(pixels)})[0]


def _second(every: Sequence[str], language: str, **kept: Any) -> Any:
    """Returns (n, 384): the text read by the second tower, less what texts of its language have in common."""
    words = [(kept["prefix"] + text).translate(normal()).split(" ") for text in every]
    marked = [[kept["space"] + word for word in of_text if word] for of_text in words]
    encoded = tokenizer("tokenizers/second.json").encode_batch(
        marked, is_pretokenized=True, add_special_tokens=False
    )
    rows = [
        [kept["start"], *_pieces(one, kept["unknown"])[: kept["most"] - 2], kept["end"]] for one in encoded
    ]
    lengths = np.array([len(row) for row in rows])
    blocks = packed()[np.array([row + [0] * (max(lengths) - len(row)) for row in rows])]
    halves = np.concatenate([blocks["halves"] & 15, blocks["halves"] >> 4], axis=-1).astype(np.float32)
    embedded = (halves - kept["middle"]) * blocks["step"].astype(np.float32)[..., None]
    inputs = {"embedded": embedded.reshape(*embedded.shape[:2], -1), "lengths": lengths}
    vectors = opened("second.onnx").run(None, inputs)[0]
    return kept["share"] * _unit(vectors - offsets()[kept["languages"].get(language, -1)])


def _pieces(encoded: Encoding, unknown: int) -> list[int]:
    pieces = zip(encoded.ids, encoded.tokens, strict=True)  # unknown letters in a row are one piece there
    return [row for piece, text in pieces for row in [piece] * (len(text) if piece == unknown else 1)]


def _unit(rows: Any) -> Any:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _rows(encoded: Encoding, words: dict[str, int]) -> list[int]:
    found: list[int] = []  # a word with a row of its own has that one, any other those of its pieces
    pieces = zip(encoded.word_ids, encoded.tokens, encoded.ids, strict=True)
    for _, word in groupby(pieces, lambda piece: piece[0]):
        _, tokens, rows = zip(*word, strict=True)
        found += [words["".join(tokens)]] if "".join(tokens) in words else rows
    return found


def _pixels(image: Image.Image, size: int, mean: Any, std: Any, interpolation: str, resize_mode: str) -> Any:
    sides = (1, 1) if resize_mode == "squash" else image.size
    width, height = (int(size * side / min(sides)) for side in sides)
    image = image.resize((width, height), Image.Resampling[interpolation.upper()])
    left, top = round((width - size) / 2), round((height - size) / 2)
    rows = np.asarray(image.crop((left, top, left + size, top + size)), np.float32) / 255
    return ((rows - np.array(mean, np.float32)) / np.array(std, np.float32)).transpose(2, 0, 1)
