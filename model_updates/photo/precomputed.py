"""What follows from the packages' weights and our own sentences, computed once and shipped: opening takes no minute.

`python -m model_updates.photo.precomputed` computes it anew, in some minutes.
"""

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional

from model_updates.photo.e5 import language_captions, sentence_e5

LEAST_TRUST = 0.05  # languages whose letters the first space does not know reach .03


def shipped() -> dict[str, Tensor]:
    """Returns float32 tensors by name, those of both spaces one after the other.

    ``classes`` (1000, 896) are ImageNet's (`conse.class_vectors`), ``centre`` (896,) is what captions have in common,
    and ``offsets`` (languages, 384) what texts of each language have in common in the second space. ``trusts``
    (languages,) and ``first_offsets`` (languages, 512) say how the first space reads each language
    (`model_updates.photo.second_space`).
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
        read = {tag: first(own) for tag, own in captions.items()}
        centre = torch.stack([read[tag].mean(dim=0) for tag in LANGUAGES]).mean(dim=0)
        meant = torch.stack([read[tag] - read[tag].mean(dim=0) for tag in LANGUAGES]).mean(dim=0)
        classes = [class_vectors(encode) for encode in (first, second)]
        return {
            "classes": torch.cat(classes, dim=1),
            # Captions of every language are centred in the second space, so that they have nothing left in common.
            "centre": torch.cat([centre, torch.zeros(offsets.shape[1])]),
            "offsets": offsets,
            "trusts": torch.stack([_trust(own, meant) for own in read.values()]),
            "first_offsets": torch.stack([own.mean(dim=0) - centre for own in read.values()]),
        }


def _trust(read: Tensor, meant: Tensor) -> Tensor:
    """Returns the mean cosine of captions (n, 512), centred, with what they mean, (n, 512); 0 where it is noise."""
    cosine = functional.cosine_similarity(read - read.mean(dim=0), meant, dim=-1).mean()
    return torch.where(cosine < LEAST_TRUST, 0.0, cosine)


def _file() -> Path:
    return Path(
        str(resources.files("model_updates") / "assets" / "perennial-photo" / "precomputed.safetensors")
    )


if __name__ == "__main__":
    save_file({name: value.half() for name, value in computed().items()}, _file())
