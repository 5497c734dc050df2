"""What follows from the packages' weights and our own sentences, computed once and shipped: opening takes no minute.

`python -m model_updates.photo.precomputed` computes it anew, in some minutes.
"""

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from model_updates.photo.e5 import language_captions, sentence_e5


def shipped() -> dict[str, Tensor]:
    """Returns float32 tensors by name, those of both spaces one after the other.

    ``classes`` (1000, 896) are ImageNet's (`conse.class_vectors`), ``centre`` (896,) is what captions have in common,
    and ``offsets`` (languages, 384) what texts of each language have in common in the second space.
    """
    return {name: value.float() for name, value in load_file(_file()).items()}


def computed() -> dict[str, Tensor]:
    """Returns what `shipped` returns, from captions and phrases."""
    from model_updates.photo.conse import class_vectors
    from model_updates.photo.model import LANGUAGES, PhotoModel, encode_shared, with_text_weights

    with torch.inference_mode():
        model, captions, tower = with_text_weights(PhotoModel()), language_captions(), sentence_e5()

        def first(texts: Sequence[str]) -> Tensor:
            return encode_shared(model, texts)

        def second(texts: Sequence[str]) -> Tensor:
            return torch.from_numpy(tower.features(texts))

        offsets = torch.stack([second(own).mean(dim=0) for own in captions.values()])
        centre = torch.stack([first(captions[tag]).mean(dim=0) for tag in LANGUAGES]).mean(dim=0)
        classes = [class_vectors(encode) for encode in (first, second)]
        return {
            "classes": torch.cat(classes, dim=1),
            # Captions of every language are centred in the second space, so that they have nothing left in common.
            "centre": torch.cat([centre, torch.zeros(offsets.shape[1])]),
            "offsets": offsets,
        }


def _file() -> Path:
    return Path(
        str(resources.files("model_updates") / "assets" / "perennial-photo" / "precomputed.safetensors")
    )


if __name__ == "__main__":
    save_file({name: value.half() for name, value in computed().items()}, _file())
