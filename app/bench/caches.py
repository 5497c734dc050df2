"""What a cell keeps in memory, so that nothing is computed twice: features, and pictures at the size a tower takes.

A cell embeds the same pictures after every step; decoding and resizing took more than half of that (docs/log.md). What
is kept is the picture just before it becomes numbers: resizing it again changes no pixel.
"""

from PIL import Image

from model_updates.features import LoadImage
from model_updates.preprocessing import Preprocessing

MOST_BYTES = 1 << 30


def resized_once(load: LoadImage, preprocessing: Preprocessing, *, most_bytes: int = MOST_BYTES) -> LoadImage:
    """Returns a way to load pictures at the size that a tower takes, which remembers them.

    What comes after `most_bytes` of pixels is decoded each time.
    """
    kept: dict[str, Image.Image] = {}
    room = most_bytes // (3 * preprocessing.size**2)

    def resized(image_id: str) -> Image.Image:
        found = kept.get(image_id)
        if found is None:
            found = preprocessing.resized(load(image_id))
            if len(kept) < room:
                kept[image_id] = found
        return found

    return resized
