"""An encoder as a folder that plain open_clip opens: `open_clip.create_model("local-dir:/a/folder")`.

Weights, architecture and preprocessing are all that open_clip has a place for. What reads one language or one domain
alone, and tokens that were added to the vocabulary, have none; an encoder with those is refused, since its vectors
would be others there.
"""

import json
from dataclasses import asdict
from pathlib import Path

import open_clip
from safetensors.torch import save_file

from model_updates.encoder import Encoder
from model_updates.errors import NotPlain
from model_updates.inserts import Router
from model_updates.shards import saying_what_the_disk_said
from model_updates.towers import CLIP_ROWS
from model_updates.vocabulary import SHARED

CONFIG, WEIGHTS = "open_clip_config.json", "open_clip_model.safetensors"


def require_plain(encoder: Encoder) -> None:
    """Refuses an encoder whose vectors plain open_clip would not give.

    Raises:
        NotPlain: names what open_clip has no place for.
    """
    owners = sorted({one.owner.name for one in encoder.inserts if not isinstance(one, Router)})
    if owners:
        raise NotPlain(
            f"open_clip has no place for the modules that read {', '.join(owners)} alone; "
            "what changes the model itself, such as `finetune` or `c-clip`, can be opened there"
        )
    if open_clip.get_model_config(encoder.architecture) is None:
        raise NotPlain(f"open_clip does not know the architecture {encoder.architecture}")
    known = encoder.vocabulary
    if known is not None and (set(known.tables) != {SHARED} or known.size != CLIP_ROWS):
        raise NotPlain(
            f"open_clip's tokenizer has {CLIP_ROWS:,} rows and one segmentation; this vocabulary has "
            f"{known.size:,} rows and reads {', '.join(sorted(known.tables))}"
        )


def write_open_clip_folder(encoder: Encoder, folder: Path) -> None:
    """Writes an encoder into an empty folder as open_clip reads it.

    Raises:
        NotPlain: open_clip would compute other vectors.
    """
    require_plain(encoder)
    config = {
        "model_cfg": open_clip.get_model_config(encoder.architecture),
        "preprocess_cfg": asdict(encoder.preprocessing),
    }
    state = {name: value.detach().cpu().contiguous() for name, value in encoder.model.state_dict().items()}
    with saying_what_the_disk_said():
        save_file(state, folder / WEIGHTS)
    (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
