"""The limits on an upload; the caller can change each of them."""

from dataclasses import dataclass

from ingest.sentence import phrase


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds checked before or while reading; the defaults suit an upload from a browser.

    `items` and `unpacked_bytes` bound archives only: a folder on the own disk may be of any size.
    """

    image_bytes: int = 100 * 1024**2  # cameras' raw files have 25 to 80 MB
    image_pixels: int = 200_000_000  # what phones take at most
    shortest_side: int = 16
    aspect: int = 50
    allow_flat: bool = False  # a picture of one single colour teaches nothing
    items: int = 20_000
    unpacked_bytes: int = 2 * 1024**3
    ratio: int = 200  # compression beyond this, counted after the first megabyte, is a bomb
    text_bytes: int = 256 * 1024**2  # tables and caption files of one archive together
    sidecar_bytes: int = 64 * 1024
    caption_characters: int = 2000
    caption_bytes: int = 8 * 1024
    line_bytes: int = 1024**2
    json_depth: int = 20
    # A caption on more pictures than this, and on more than this share of them, is for a person to judge.
    repeated_caption_images: int = 20
    repeated_caption_share: float = 0.2

    def too_large(self, size: int) -> str:
        """Says that a picture's file has too many bytes."""
        return phrase(
            "The file has {size} MB; the limit is {most} MB.",
            size=f"{size / 1024**2:.1f}",
            most=f"{self.image_bytes / 1024**2:.0f}",
        )


DEFAULT_LIMITS = Limits()
