"""Emoji as samples: pictures from the system's colour emoji font, names from PyPI ``emoji``.

Nothing here is drawn or translated by us, so it is there only when the machine has such a font; callers ask
`colour_emoji_font` first and go on without emoji when it returns None.
"""

import os
from functools import cache
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

LANGUAGES: tuple[str, ...] = (
    *("en", "de", "es", "fr", "ja", "ko", "pt", "it", "fa", "id", "zh", "ru", "tr", "ar"),
)
# Colour bitmap fonts have one size only; these are the sizes the known fonts are made in.
_BITMAP_SIZES = (109, 136, 160)
_FONT_FILES = ("NotoColorEmoji.ttf", "NotoColorEmoji-Regular.ttf", "Apple Color Emoji.ttc", "seguiemj.ttf")

_SELECTION = """
🐵 🐶 🐺 🦊 🐱 🦁 🐯 🐴 🦄 🐮 🐷 🐭 🐹 🐰 🐻 🐼 🐔 🐸 🐲 🐒 🦍 🐕 🐩 🐈 🐅 🐆 🐎 🦓 🦌 🐂
🐄 🐖 🐏 🐑 🐐 🐪 🦒 🐘 🦏 🐁 🐇 🐿️ 🦔 🦇 🐨 🐾 🦃 🐓 🐣 🐧 🕊️ 🦅 🦆 🦉 🐊 🐢 🦎 🐍 🐳 🐬
🐟 🐠 🐡 🦈 🐙 🐚 🐌 🦋 🐛 🐜 🐝 🐞 🦗 🕷️ 🦂 💐 🌸 🌹 🌻 🌷 🌲 🌳 🌴 🌵 🌾 🍀 🍁 🍄 🍇 🍈
🍉 🍊 🍋 🍌 🍍 🍎 🍐 🍑 🍒 🍓 🥝 🍅 🥥 🥑 🍆 🥔 🥕 🌽 🌶️ 🥒 🥦 🥜 🌰 🍞 🥐 🥖 🥨 🥞 🧀 🍖
🍗 🥓 🍔 🍟 🍕 🌭 🥪 🌮 🌯 🥚 🍳 🍲 🥗 🍿 🍱 🍙 🍚 🍜 🍝 🍣 🍦 🍩 🍪 🎂 🧁 🥧 🍫 🍬 🍭 🍯
🍼 🥛 ☕ 🍵 🍷 🍺 🍴 🥄 🏠 🏰 ⛪ ⛺ 🎡 🎪 🚂 🚌 🚑 🚒 🚕 🚗 🚚 🚜 🚲 🛴 ⚓ ⛵ 🚤 🚢 ✈️ 🚁
🚀 ⌚ ⏰ ☂️ ⛄ 🎈 🎁 🏆 ⚽ 🏀 🏈 🎾 🎳 🎯 🎲 🧩 🎨 👓 👕 👖 👗 👟 👠 👑 🎩 🎒 💍 🔔 🎸 🎹
🎺 🎻 🥁 📱 ☎️ 💻 📷 🔍 💡 📖
"""


class EmojiNotInFont(ValueError):
    """The font has no picture for an emoji."""


@cache
def colour_emoji_font() -> Path | None:
    """The colour emoji font of this machine, or None when it has none."""
    home = Path.home()
    folders = [Path("/usr/share/fonts"), Path("/usr/local/share/fonts"), home / ".fonts"]
    folders += [home / ".local/share/fonts", Path("/System/Library/Fonts"), Path("/Library/Fonts")]
    if "WINDIR" in os.environ:
        folders.append(Path(os.environ["WINDIR"]) / "Fonts")
    for folder in folders:
        found = {path.name: path for path in folder.rglob("*") if path.name in _FONT_FILES}
        for file in _FONT_FILES:
            if file in found and _loads(found[file]):
                return found[file]
    return None


def emoji_names(language: str) -> dict[str, str]:
    """The name of every emoji that has one in the language, without colons and underscores.

    Raises:
        ValueError: the language is not one of them.
    """
    if language not in LANGUAGES:
        raise ValueError(f"emoji have no names in {language!r}; choose one of {', '.join(LANGUAGES)}")
    import emoji as emoji_package  # the extra `learn` installs it

    emoji_package.config.load_language(language)
    names = {}
    for character, entry in emoji_package.EMOJI_DATA.items():
        complete = entry["status"] == emoji_package.STATUS["fully_qualified"]
        if complete and language in entry:
            names[character] = " ".join(str(entry[language]).strip(":").replace("_", " ").split())
    return names


def selection() -> tuple[str, ...]:
    """About 200 animals, plants, foods and objects that look and are named unlike one another."""
    return tuple(_SELECTION.split())


def draw_emoji(character: str, font: Path, size: int) -> Image.Image:
    """One emoji on white, filling about nine tenths of an RGB picture of (size, size).

    Raises:
        EmojiNotInFont: the font has no picture for the character.
        ValueError: it is no colour emoji font.
    """
    face = _face(font)
    side = round(face.size * 1.6)
    canvas = Image.new("RGBA", (side, side), (255, 255, 255, 0))
    ImageDraw.Draw(canvas).text((side // 8, side // 8), character, font=face, embedded_color=True)
    ink = canvas.getchannel("A").getbbox()
    if ink is None:
        raise EmojiNotInFont(f"the font {font.name} has no picture for {character!r}; choose another emoji")
    glyph = canvas.crop(ink)
    room = round(size * 0.9)
    scale = room / max(glyph.size)
    glyph = glyph.resize(
        (max(1, round(glyph.width * scale)), max(1, round(glyph.height * scale))), Image.Resampling.LANCZOS
    )
    picture = Image.new("RGB", (size, size), (255, 255, 255))
    picture.paste(glyph, ((size - glyph.width) // 2, (size - glyph.height) // 2), glyph)
    return picture


@cache
def _face(font: Path) -> ImageFont.FreeTypeFont:
    """The font at the one size its bitmaps have.

    Raises:
        ValueError: it is no colour emoji font that Pillow can read.
    """
    for size in _BITMAP_SIZES:
        try:
            return ImageFont.truetype(font, size)
        except OSError:
            continue
    raise ValueError(f"{font.name} cannot be read as a colour emoji font; install fonts-noto-color-emoji")


def _loads(font: Path) -> bool:
    try:
        picture = draw_emoji("🍎", font, 32)
    except ValueError:
        return False
    # A font without colour bitmaps draws the outline in one colour.
    red, green, blue = picture.resize((1, 1)).getpixel((0, 0)) or (0, 0, 0)  # type: ignore[misc]
    return red > green + 10 and red > blue + 10
