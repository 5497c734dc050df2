"""Writes the second text space into a folder for programs without Perennial: what `model_updates.onnx_loader` reads.

Token rows stay at 4 bits, 54 MB. The pieces become a tokenizer.json, whose words the loader cuts beforehand, as no
normaliser of `tokenizers` does what the package's map of code points does.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import Unigram
from torch import Tensor

from model_updates.photo import packages
from model_updates.photo.e5 import MOST_TOKENS, PREFIX
from model_updates.photo.e5_file import BLOCK, MIDDLE, WIDTH, PackedFile
from model_updates.photo.e5_graph import body_graph
from model_updates.photo.e5_pieces import CONTROL, END, SPACE, START, UNKNOWN

GRAPH = "second.onnx"


def write_e5(folder: Path, offsets: Tensor) -> dict[str, Any]:
    """Writes ``second.*`` with the offsets (languages, 384); returns what the loader has to know.

    The last row of the offsets is that of a language without one.

    Raises:
        UnknownModel: the package is not installed.
        WeightsMismatch: its file is not the pinned one.
    """
    file = PackedFile(packages.checked_file(packages.SENTENCES))
    (folder / GRAPH).write_bytes(body_graph(file, MOST_TOKENS).SerializeToString())
    np.save(folder / "second.rows.npy", file.blocks["emb.word"].reshape(-1, WIDTH // BLOCK))
    np.save(folder / "second.offsets.npy", np.vstack([offsets, offsets.mean(dim=0)]))
    # No word has a space in it, so no text can spell what stands for a start, an end or the like.
    pieces = [f" {piece}" if piece in CONTROL else piece for piece in file.pieces]
    rules = Tokenizer(Unigram(list(zip(pieces, file.scores, strict=True)), unk_id=UNKNOWN))
    rules.save(str(folder / "tokenizers" / "second.json"))
    normal = {chr(point): letters for point, letters in file.normal.items()}
    (folder / "tokenizers" / "second.normal.json").write_text(json.dumps(normal), encoding="utf-8")
    return {
        "start": START,
        "end": END,
        "unknown": UNKNOWN,
        "most": MOST_TOKENS,
        "prefix": PREFIX,
        "space": SPACE,
        "middle": MIDDLE,
    }
