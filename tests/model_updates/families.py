"""Small relatives of encoders that hubs hold, with random weights and a tokenizer beside them, as in a repository.

Each is its family's own code by its family's own configuration (`LIKE`), with fewer and narrower layers and pictures of
32 or 64 pixels: whole they take gigabytes and minutes.
"""

from __future__ import annotations

import functools
import json
import tempfile
from pathlib import Path
from typing import Any

import open_clip
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from model_updates import hub_texts
from model_updates.opening import build_model
from tests.model_updates.tiny import toy_pairs

LIKE = {
    "small-xlm-roberta-ViT": "xlm-roberta-base-ViT-B-32",
    "small-SigLIP2": "ViT-B-32-SigLIP2-256",
    "small-MobileCLIP-S": "MobileCLIP-S1",
    "small-MobileCLIP-B": "MobileCLIP-B",
}
FOREIGN = ("small-xlm-roberta-ViT", "small-SigLIP2")  # whose tokenizers open_clip does not bring
SAYS = "small-xlm-roberta"  # what XLM-R's stands for where sizes are written down
_ROWS = 300
_VISION: dict[str, dict[str, Any]] = {
    "small-xlm-roberta-ViT": {"image_size": 32, "patch_size": 16, "width": 32, "layers": 2, "head_width": 16},
    "small-SigLIP2": {"image_size": 64, "timm_model_name": "test_vit"},
    "small-MobileCLIP-S": {"image_size": 64, "timm_model_name": "fastvit_t8"},
    "small-MobileCLIP-B": {"image_size": 64, "timm_model_name": "test_vit"},
}
_TEXT: dict[str, dict[str, Any]] = {
    "small-xlm-roberta-ViT": {"hf_model_name": SAYS, "hf_tokenizer_name": SAYS},
    "small-SigLIP2": {"hf_tokenizer_name": "small/siglip2", "vocab_size": _ROWS},
    "small-MobileCLIP-S": {},
    "small-MobileCLIP-B": {},
}
_NARROW = {"width": 32, "heads": 2, "layers": 2}
_WIDTH = 64  # of a joint space, as wide as the picture tower of SigLIP 2, which has no projection


def configuration(name: str) -> dict[str, Any]:
    """Returns what open_clip builds a small relative from."""
    large = open_clip.get_model_config(LIKE[name])
    narrow = {} if "hf_model_name" in large["text_cfg"] else _NARROW
    return {
        **large,
        "embed_dim": _WIDTH,
        "vision_cfg": {**large["vision_cfg"], **_VISION[name]},
        "text_cfg": {**large["text_cfg"], **narrow, **_TEXT[name]},
    }


@functools.cache
def register() -> None:
    """Makes the small relatives known to open_clip, and the sizes of their text tower where its name is looked up."""
    folder = Path(tempfile.mkdtemp(prefix="perennial-families-"))
    for name in LIKE:
        (folder / f"{name}.json").write_text(json.dumps(configuration(name)), encoding="utf-8")
    open_clip.add_model_config(folder)
    small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
    sizes = {"vocab_size": _ROWS, "max_position_embeddings": 80}
    hub_texts.DESCRIBED[SAYS] = hub_texts.DESCRIBED["xlm-roberta-base"] | small | sizes


def weights_of(name: str, folder: Path) -> Path:
    """Writes random weights into a new folder, beside them the rules of a foreign tokenizer; returns the weights."""
    register()
    folder.mkdir()
    if name in FOREIGN:
        write_rules(folder)
    torch.manual_seed(5)
    file = folder / "open_clip_model.safetensors"
    save_file({key: value.contiguous() for key, value in build_model(name).state_dict().items()}, file)
    return file


def write_rules(folder: Path) -> None:
    """Writes a tokenizer of a few hundred pieces that marks both ends, as those of XLM-R and SigLIP 2 are written."""
    rules = Tokenizer(models.Unigram())
    rules.normalizer = normalizers.NFKC()
    rules.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(
        vocab_size=_ROWS, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    texts = [pair.text for tag in ("en", "de") for pair in toy_pairs(tag)]
    rules.train_from_iterator([*texts, "abcdefghijklmnopqrstuvwxyz äöüß"], trainer)
    ends = [("<s>", 0), ("</s>", 2)]
    rules.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    rules.save(str(folder / hub_texts.RULES))
    said = {"pad_token": "<pad>", "unk_token": "<unk>", "tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / hub_texts.SAID).write_text(json.dumps(said), encoding="utf-8")
