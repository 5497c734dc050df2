"""Which encoders there are to begin with: embedded ones, open_clip's architectures, pretrained tags."""

from collections import defaultdict
from dataclasses import dataclass

import open_clip

from model_updates.embedded import EMBEDDED
from model_updates.hub import hub_answers
from model_updates.opening import fitting_variant


@dataclass(frozen=True)
class Available:
    """What `open_encoder` takes."""

    embedded: tuple[str, ...]  # names of encoders that bring their weights
    # open_clip's, each with the pretrained tags that fit it, which a hub has the weights for
    architectures: dict[str, tuple[str, ...]]
    hub: bool  # whether the hub answers now


def available(part: str = "") -> Available:
    """Lists encoders whose name contains `part`, upper case or lower; asks the hub once, for at most 3 seconds."""
    wanted = part.strip().casefold()
    tags: dict[str, list[str]] = defaultdict(list)
    for name, tag in open_clip.list_pretrained():
        if fitting_variant(name, tag) == name:
            tags[name].append(tag)
    return Available(
        embedded=tuple(name for name in EMBEDDED if wanted in name.casefold()),
        architectures={
            name: tuple(tags[name]) for name in open_clip.list_models() if wanted in name.casefold()
        },
        hub=hub_answers(),
    )
