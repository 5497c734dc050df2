"""Which encoders there are to begin with: embedded ones, open_clip's architectures, pretrained tags."""

from collections import defaultdict
from dataclasses import dataclass

import open_clip

from model_updates.hub import hub_answers
from model_updates.opening import embedded_models, fitting_variant
from model_updates.photo import packages
from model_updates.photo.weights import NAME as PHOTO


@dataclass(frozen=True)
class Available:
    """What `open_encoder` takes."""

    embedded: tuple[str, ...]  # names of encoders that bring their weights
    # open_clip's, each with the pretrained tags that fit it, which a hub has the weights for
    architectures: dict[str, tuple[str, ...]]
    hub: bool  # whether the hub answers now


def lacking(model: str) -> str:
    """Returns a sentence that says what an encoder is made without on this machine; empty where it is whole."""
    if model != PHOTO or packages.is_installed(packages.SENTENCES):
        return ""
    return (
        f"{PHOTO} reads sixteen languages here and not about a hundred, as the package {packages.SENTENCES[0]}, "
        "which reads the others, is not installed; it is not made for Windows."
    )


def available(part: str = "") -> Available:
    """Lists encoders whose name contains `part`, upper case or lower; asks the hub once, for at most 3 seconds."""
    wanted = part.strip().casefold()
    tags: dict[str, list[str]] = defaultdict(list)
    for name, tag in open_clip.list_pretrained():
        if fitting_variant(name, tag) == name:
            tags[name].append(tag)
    return Available(
        embedded=tuple(name for name in embedded_models() if wanted in name.casefold()),
        architectures={
            name: tuple(tags[name]) for name in open_clip.list_models() if wanted in name.casefold()
        },
        hub=hub_answers(),
    )
