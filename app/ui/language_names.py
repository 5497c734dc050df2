"""Languages by the names their speakers use, for menus; small enough to need no package of all the world's names."""

from __future__ import annotations

_OWN_NAMES = {
    "af": "Afrikaans", "am": "አማርኛ", "ar": "العربية", "az": "Azərbaycanca", "be": "Беларуская",
    "bg": "Български", "bn": "বাংলা", "bs": "Bosanski", "ca": "Català", "cs": "Čeština", "cy": "Cymraeg",
    "da": "Dansk", "de": "Deutsch", "el": "Ελληνικά", "en": "English", "eo": "Esperanto", "es": "Español",
    "et": "Eesti", "eu": "Euskara", "fa": "فارسی", "fi": "Suomi", "fil": "Filipino", "fr": "Français",
    "ga": "Gaeilge", "gl": "Galego", "gu": "ગુજરાતી", "he": "עברית", "hi": "हिन्दी", "hr": "Hrvatski",
    "hu": "Magyar", "hy": "Հայերեն", "id": "Indonesia", "is": "Íslenska", "it": "Italiano", "ja": "日本語",
    "ka": "ქართული", "kk": "Қазақ тілі", "km": "ខ្មែរ", "kn": "ಕನ್ನಡ", "ko": "한국어", "la": "Latina",
    "lo": "ລາວ", "lt": "Lietuvių", "lv": "Latviešu", "mk": "Македонски", "ml": "മലയാളം", "mn": "Монгол",
    "mr": "मराठी", "ms": "Melayu", "my": "မြန်မာ", "ne": "नेपाली", "nl": "Nederlands", "no": "Norsk",
    "nb": "Norsk bokmål", "nn": "Norsk nynorsk", "pa": "ਪੰਜਾਬੀ", "pl": "Polski", "pt": "Português",
    "ro": "Română", "ru": "Русский", "si": "සිංහල", "sk": "Slovenčina", "sl": "Slovenščina",
    "sq": "Shqip", "sr": "Српски", "sv": "Svenska", "sw": "Kiswahili", "ta": "தமிழ்", "te": "తెలుగు",
    "th": "ไทย", "tl": "Tagalog", "tr": "Türkçe", "uk": "Українська", "ur": "اردو", "uz": "Oʻzbekcha",
    "vi": "Tiếng Việt", "yo": "Yorùbá", "zh": "中文", "zu": "isiZulu",
}  # fmt: skip
_IN_ENGLISH = {
    "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan", "cs": "Czech", "da": "Danish",
    "de": "German", "el": "Greek", "en": "English", "es": "Spanish", "et": "Estonian", "fa": "Persian",
    "fi": "Finnish", "fr": "French", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian",
    "id": "Indonesian", "it": "Italian", "ja": "Japanese", "ko": "Korean", "lt": "Lithuanian", "lv": "Latvian",
    "nl": "Dutch", "no": "Norwegian", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian",
    "sk": "Slovak", "sl": "Slovenian", "sr": "Serbian", "sv": "Swedish", "sw": "Swahili", "ta": "Tamil",
    "te": "Telugu", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu", "vi": "Vietnamese",
    "zh": "Chinese",
}  # fmt: skip


def own_name(tag: str) -> str:
    """Returns a language's name in itself: "Deutsch" for `de`, "Português (BR)" for `pt-BR`; else the tag."""
    return _named(tag, _OWN_NAMES)


def english_name(tag: str) -> str:
    """Returns a language's English name: "German" for `de`; else its own name or the tag."""
    return _named(tag, _OWN_NAMES | _IN_ENGLISH)


def name_in(tag: str, spoken: str) -> str:
    """Returns what readers of a language call another: by its English name in English, else by its own."""
    return english_name(tag) if spoken == "en" else own_name(tag)


def _named(tag: str, names: dict[str, str]) -> str:
    primary, _, rest = tag.partition("-")
    if primary not in names:
        return tag
    return f"{names[primary]} ({rest})" if rest else names[primary]
