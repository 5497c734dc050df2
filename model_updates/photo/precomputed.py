"""What follows from the packages' weights and our own sentences, computed once and shipped: opening takes no minute.

`python -m model_updates.photo.precomputed` computes it anew, in some minutes.
"""

from collections.abc import Sequence

import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional

from model_updates.photo.e5 import language_captions, sentence_e5
from model_updates.photo.weights import LANGUAGES, precomputed_file, text_weights

LEAST_TRUST = 0.05  # languages whose letters the first space does not know reach .03


def computed() -> dict[str, Tensor]:
    """Returns what `weights.shipped` returns, from captions and phrases."""
    from model_updates.photo.conse import class_vectors
    from model_updates.photo.model import PhotoModel, encode_shared

    with torch.inference_mode():
        model, captions, tower = PhotoModel().filled(text_weights()), language_captions(), sentence_e5()

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


if __name__ == "__main__":
    save_file({name: value.half() for name, value in computed().items()}, precomputed_file())
