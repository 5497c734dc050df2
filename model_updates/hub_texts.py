"""What open_clip asks a hub for about a text tower, had without one: how it is built, and the rules that cut its texts.

Of XLM-RoBERTa the sizes are written down here. The rules lie beside the weights, as a repository of a hub has them
(``tokenizer.json``), or come from the hub the first time; they travel with a version, which then needs neither.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import open_clip
from open_clip.tokenizer import DEFAULT_CONTEXT_LENGTH
from tokenizers import Tokenizer

from model_updates.encoder import ForeignTokenizer
from model_updates.errors import UnknownModel
from model_updates.hub import hub_answers, is_cached
from model_updates.kept_tokenizer import KeptTokenizer

RULES, SAID = "tokenizer.json", "tokenizer_config.json"
_XLM = {
    "model_type": "xlm-roberta",
    "vocab_size": 250_002,
    "max_position_embeddings": 514,
    "type_vocab_size": 1,
}
_XLM |= {"layer_norm_eps": 1e-5, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
_BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
_LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
# Conneau et al., "Unsupervised Cross-lingual Representation Learning at Scale", ACL 2020, and its published files.
DESCRIBED: dict[str, dict[str, Any]] = {"xlm-roberta-base": _XLM | _BASE, "xlm-roberta-large": _XLM | _LARGE}


@contextmanager
def buildable(architecture: str) -> Iterator[dict[str, Any]]:
    """Yields what `open_clip.create_model` is to be told of a text tower, so that it asks no hub where it need not.

    Raises:
        UnknownModel: only a hub can tell, and none answers.
    """
    text = _text(architecture)
    name = text.get("hf_model_name")
    if name is None:
        yield {}
    elif name in DESCRIBED:
        with TemporaryDirectory() as folder:
            (Path(folder) / "config.json").write_text(json.dumps(DESCRIBED[name]), encoding="utf-8")
            yield {"text_cfg": {**text, "hf_model_name": folder, "hf_model_pretrained": False}}
    else:
        _require_hub(name, f"the text tower of {architecture} is described there alone")
        yield {}


def tokenizer_for(architecture: str, beside: Path | None = None) -> ForeignTokenizer:
    """Returns the tokenizer of an architecture: by the rules in the folder `beside`, else open_clip's own or a hub's.

    Raises:
        UnknownModel: there are no rules and no hub answers, or they do not say how texts are filled up.
    """
    text = _text(architecture)
    name = text.get("hf_tokenizer_name")
    if not name:
        own: ForeignTokenizer = open_clip.get_tokenizer(architecture)
        return own
    is_plain = text.get("tokenizer_kwargs", {}).keys() <= {"clean"}
    if is_plain and beside is not None and (beside / RULES).is_file():
        rules = Tokenizer.from_file(str(beside / RULES))
        return kept(architecture, _filled_up(rules, _padding(rules, beside)))
    _require_hub(
        name, f"{architecture} cuts texts by its rules; put its {RULES} and {SAID} beside the weights"
    )
    theirs = open_clip.get_tokenizer(architecture)
    read: Any = getattr(theirs, "tokenizer", None)
    if is_plain and hasattr(read, "backend_tokenizer"):
        return kept(architecture, _filled_up(read.backend_tokenizer, read.pad_token))
    other: ForeignTokenizer = theirs
    return other


def kept(architecture: str, rules: str) -> KeptTokenizer:
    """Returns the tokenizer of an architecture by the rules that a version keeps."""
    text = _text(architecture)
    clean = text.get("tokenizer_kwargs", {}).get("clean", "whitespace")
    longest = text.get("context_length", DEFAULT_CONTEXT_LENGTH)
    return KeptTokenizer(rules, longest=longest, clean=clean, pad=json.loads(rules)["padding"]["pad_id"])


def _filled_up(rules: Tokenizer, padding: str) -> str:
    rules.enable_padding(pad_id=rules.token_to_id(padding), pad_token=padding)
    text: str = rules.to_str()
    return text


def _padding(rules: Tokenizer, folder: Path) -> str:
    """Returns the token that fills up texts."""
    said: Mapping[str, Any] = {}
    if (folder / SAID).is_file():
        said = json.loads((folder / SAID).read_text(encoding="utf-8"))
    named = said.get("pad_token")
    for token in (named.get("content") if isinstance(named, dict) else named, "<pad>", "[PAD]"):
        if token is not None and rules.token_to_id(token) is not None:
            return str(token)
    raise UnknownModel(
        f"{RULES} beside the weights has no token for filling up texts; put the {SAID} that goes with it there, too"
    )


def _require_hub(repository: str, why: str) -> None:
    if not is_cached(repository) and not Path(repository).is_dir() and not hub_answers():
        raise UnknownModel(f"{repository} is not on this machine, and no hub answers from here: {why}")


def _text(architecture: str) -> dict[str, Any]:
    text: dict[str, Any] = (open_clip.get_model_config(architecture) or {}).get("text_cfg", {})
    return text
