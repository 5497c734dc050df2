"""Tiny random sentence-transformers models, saved to local folders by the libraries themselves."""

from __future__ import annotations

import functools
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from model_updates.encoder import Encoder
from model_updates.sentence.folders import open_folders
from tests.model_updates.tiny import toy_pairs

# transformers and sentence-transformers are loaded where they are used: every worker collects every test.
if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
SMALL = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}


def clip_folder(folder: Path, *, dim: int = 24) -> Path:
    """A CLIP of 32 pixels whose texts are spelled letter by letter; one folder that does both."""
    from sentence_transformers import SentenceTransformer
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel, CLIPProcessor, CLIPTokenizer

    letters = "abcdefghijklmnopqrstuvwxyz"
    pieces = ["<|startoftext|>", "<|endoftext|>", *letters, *(f"{letter}</w>" for letter in letters)]
    raw = folder.with_name(f"{folder.name}-raw")
    raw.mkdir(parents=True)
    (raw / "vocab.json").write_text(json.dumps({piece: n for n, piece in enumerate(pieces)}))
    (raw / "merges.txt").write_text("#version: 0.2\n")
    text = SMALL | {"vocab_size": len(pieces), "max_position_embeddings": 40, "projection_dim": dim}
    text |= {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
    vision = SMALL | {"image_size": 32, "patch_size": 16, "projection_dim": dim}
    torch.manual_seed(1)
    CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=dim)).save_pretrained(raw)
    pictures = CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    CLIPProcessor(pictures, CLIPTokenizer.from_pretrained(raw, model_max_length=40)).save_pretrained(raw)
    SentenceTransformer(str(raw), device="cpu").save(str(folder), create_model_card=False)
    return folder


def text_folder(folder: Path, *, kind: str = "distilbert", dim: int = 24) -> Path:
    """A multilingual text model of whole words: a transformer, its tokens' mean, a dense layer."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling
    from transformers import BertConfig, BertModel, DistilBertConfig, DistilBertModel

    words = sorted({word.lower() for tag in ("de", "en") for p in toy_pairs(tag) for word in p.text.split()})
    raw = folder.with_name(f"{folder.name}-raw")
    _words(SPECIAL + words).save_pretrained(raw)
    size = len(SPECIAL) + len(words)
    torch.manual_seed(2)
    if kind == "bert":
        BertModel(BertConfig(vocab_size=size, max_position_embeddings=24, **SMALL)).save_pretrained(raw)
        layers = [Pooling(32, "cls"), Dense(32, dim), Normalize()]
    else:
        config = DistilBertConfig(
            vocab_size=size, dim=32, n_layers=2, n_heads=2, hidden_dim=48, max_position_embeddings=24
        )
        DistilBertModel(config).save_pretrained(raw)
        layers = [Pooling(32, "mean"), Dense(32, dim, bias=False, activation_function=torch.nn.Identity())]
    modules = [Transformer(str(raw)), *layers]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder), create_model_card=False)
    return folder


def _words(pieces: list[str]) -> PreTrainedTokenizerFast:
    from transformers import PreTrainedTokenizerFast

    rules = Tokenizer(models.WordPiece({piece: n for n, piece in enumerate(pieces)}, unk_token="[UNK]"))
    rules.normalizer = normalizers.BertNormalizer()
    rules.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(name, pieces.index(name)) for name in ("[CLS]", "[SEP]")]
    rules.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    return PreTrainedTokenizerFast(
        tokenizer_object=rules,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=24,
    )


@functools.cache
def both_folders() -> tuple[Path, Path]:
    """A folder for pictures and one for texts, made once for all tests."""
    home = Path(tempfile.mkdtemp(prefix="perennial-sentence-"))
    return clip_folder(home / "pictures"), text_folder(home / "texts")


@functools.cache
def _opened() -> Encoder:
    return open_folders(*both_folders())


def sentence_encoder() -> Encoder:
    """The tiny CLIP image tower beside the multilingual text tower."""
    return _opened().copy()
