"""The words of eight languages for drawn scenes: one table of forms per language, no spelling rules.

Every inflected form is written out, because rules that guess endings are wrong exactly where a native speaker
looks. `scene_grammar` puts the forms together. The order of colours is `COLOURS`, of subjects `SUBJECTS`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingest.samples.scene_grid import COLOURS, SUBJECTS

Forms = tuple[str, ...]


def _rows(keys: Sequence[str], text: str) -> dict[str, Forms]:
    """One line per key, its forms parted by commas."""
    lines = [line.strip() for line in text.strip().splitlines()]
    return {
        key: tuple(form.strip() for form in line.split(",")) for key, line in zip(keys, lines, strict=True)
    }


# Places: meadow, beach, snow, desert, city. Times: day, sunset, night. Each with its preposition or case.
PLACE_WORDS: dict[str, Forms] = {
    "en": ("in a meadow", "on the beach", "in the snow", "in the desert", "in the city"),
    "de": ("auf der Wiese", "am Strand", "im Schnee", "in der Wüste", "in der Stadt"),
    "fr": ("dans un pré", "sur la plage", "dans la neige", "dans le désert", "en ville"),
    "ru": ("на лугу", "на пляже", "на снегу", "в пустыне", "в городе"),
    "hi": ("घास के मैदान में", "समुद्र तट पर", "बर्फ़ में", "रेगिस्तान में", "शहर में"),
    "ja": ("草原", "砂浜", "雪原", "砂漠", "街"),
    "ar": ("في المرج", "على الشاطئ", "في الثلج", "في الصحراء", "في المدينة"),
    "zh": ("草地上", "海滩上", "雪地里", "沙漠里", "城市里"),
}
TIME_WORDS: dict[str, Forms] = {
    "en": ("by day", "at sunset", "at night"),
    "de": ("bei Tag", "bei Sonnenuntergang", "bei Nacht"),
    "fr": ("en plein jour", "au coucher du soleil", "la nuit"),
    "ru": ("днём", "на закате", "ночью"),
    "hi": ("दिन में", "सूर्यास्त के समय", "रात में"),
    "ja": ("昼", "夕暮れ", "夜"),
    "ar": ("نهارًا", "عند الغروب", "ليلًا"),
    "zh": ("白天", "日落时", "夜晚"),
}

# singular, plural
EN_NOUNS = _rows(
    SUBJECTS,
    """
    house, houses
    boat, boats
    tree, trees
    car, cars
    fish, fish
    bird, birds
    cat, cats
    flower, flowers
    umbrella, umbrellas
    cup, cups
    balloon, balloons
    butterfly, butterflies
    """,
)
# gender, singular, plural
DE_NOUNS = _rows(
    SUBJECTS,
    """
    n, Haus, Häuser
    n, Boot, Boote
    m, Baum, Bäume
    n, Auto, Autos
    m, Fisch, Fische
    m, Vogel, Vögel
    f, Katze, Katzen
    f, Blume, Blumen
    m, Regenschirm, Regenschirme
    f, Tasse, Tassen
    m, Luftballon, Luftballons
    m, Schmetterling, Schmetterlinge
    """,
)
# nominative after "ein": m, f, n; plural without article
DE_COLOURS = _rows(
    COLOURS,
    """
    roter, rote, rotes, rote
    orangefarbener, orangefarbene, orangefarbenes, orangefarbene
    gelber, gelbe, gelbes, gelbe
    grüner, grüne, grünes, grüne
    blauer, blaue, blaues, blaue
    violetter, violette, violettes, violette
    rosafarbener, rosafarbene, rosafarbenes, rosafarbene
    weißer, weiße, weißes, weiße
    """,
)
FR_NOUNS = _rows(
    SUBJECTS,
    """
    f, maison, maisons
    m, bateau, bateaux
    m, arbre, arbres
    f, voiture, voitures
    m, poisson, poissons
    m, oiseau, oiseaux
    m, chat, chats
    f, fleur, fleurs
    m, parapluie, parapluies
    f, tasse, tasses
    m, ballon, ballons
    m, papillon, papillons
    """,
)
# m singular, f singular, m plural, f plural
FR_COLOURS = _rows(
    COLOURS,
    """
    rouge, rouge, rouges, rouges
    orange, orange, orange, orange
    jaune, jaune, jaunes, jaunes
    vert, verte, verts, vertes
    bleu, bleue, bleus, bleues
    violet, violette, violets, violettes
    rose, rose, roses, roses
    blanc, blanche, blancs, blanches
    """,
)
# gender, nominative singular, genitive singular (after two, three), nominative plural
RU_NOUNS = _rows(
    SUBJECTS,
    """
    m, дом, дома, дома
    f, лодка, лодки, лодки
    n, дерево, дерева, деревья
    f, машина, машины, машины
    f, рыба, рыбы, рыбы
    f, птица, птицы, птицы
    m, кот, кота, коты
    m, цветок, цветка, цветы
    m, зонт, зонта, зонты
    f, чашка, чашки, чашки
    m, шарик, шарика, шарики
    f, бабочка, бабочки, бабочки
    """,
)
# m, f, n, nominative plural (also after two, three with feminines), genitive plural (with the others)
RU_COLOURS = _rows(
    COLOURS,
    """
    красный, красная, красное, красные, красных
    оранжевый, оранжевая, оранжевое, оранжевые, оранжевых
    жёлтый, жёлтая, жёлтое, жёлтые, жёлтых
    зелёный, зелёная, зелёное, зелёные, зелёных
    синий, синяя, синее, синие, синих
    фиолетовый, фиолетовая, фиолетовое, фиолетовые, фиолетовых
    розовый, розовая, розовое, розовые, розовых
    белый, белая, белое, белые, белых
    """,
)
HI_NOUNS = _rows(
    SUBJECTS,
    """
    m, घर, घर
    f, नाव, नावें
    m, पेड़, पेड़
    f, कार, कारें
    f, मछली, मछलियाँ
    f, चिड़िया, चिड़ियाँ
    f, बिल्ली, बिल्लियाँ
    m, फूल, फूल
    m, छाता, छाते
    m, प्याला, प्याले
    m, गुब्बारा, गुब्बारे
    f, तितली, तितलियाँ
    """,
)
# m singular, m plural, feminine
HI_COLOURS = _rows(
    COLOURS,
    """
    लाल, लाल, लाल
    नारंगी, नारंगी, नारंगी
    पीला, पीले, पीली
    हरा, हरे, हरी
    नीला, नीले, नीली
    बैंगनी, बैंगनी, बैंगनी
    गुलाबी, गुलाबी, गुलाबी
    सफ़ेद, सफ़ेद, सफ़ेद
    """,
)
# noun, counter, verb of being (living things: いる)
JA_NOUNS = _rows(
    SUBJECTS,
    """
    家, 軒, ある
    船, 隻, ある
    木, 本, ある
    車, 台, ある
    魚, 匹, いる
    鳥, 羽, いる
    猫, 匹, いる
    花, 輪, ある
    傘, 本, ある
    カップ, 個, ある
    風船, 個, ある
    蝶, 匹, いる
    """,
)
JA_COLOURS = _rows(
    COLOURS,
    """
    赤い
    オレンジ色の
    黄色い
    緑色の
    青い
    紫色の
    ピンク色の
    白い
    """,
)
# gender, singular, dual, plural
AR_NOUNS = _rows(
    SUBJECTS,
    """
    m, بيت, بيتان, بيوت
    m, قارب, قاربان, قوارب
    f, شجرة, شجرتان, أشجار
    f, سيارة, سيارتان, سيارات
    f, سمكة, سمكتان, أسماك
    m, طائر, طائران, طيور
    f, قطة, قطتان, قطط
    f, زهرة, زهرتان, أزهار
    f, مظلة, مظلتان, مظلات
    m, فنجان, فنجانان, فناجين
    m, بالون, بالونان, بالونات
    f, فراشة, فراشتان, فراشات
    """,
)
# m singular, f singular (also for all plurals of things and animals), m dual, f dual
AR_COLOURS = _rows(
    COLOURS,
    """
    أحمر, حمراء, أحمران, حمراوان
    برتقالي, برتقالية, برتقاليان, برتقاليتان
    أصفر, صفراء, أصفران, صفراوان
    أخضر, خضراء, أخضران, خضراوان
    أزرق, زرقاء, أزرقان, زرقاوان
    بنفسجي, بنفسجية, بنفسجيان, بنفسجيتان
    وردي, وردية, ورديان, ورديتان
    أبيض, بيضاء, أبيضان, بيضاوان
    """,
)
# noun, measure word
ZH_NOUNS = _rows(
    SUBJECTS,
    """
    房子, 座
    小船, 条
    树, 棵
    汽车, 辆
    鱼, 条
    鸟, 只
    猫, 只
    花, 朵
    雨伞, 把
    杯子, 个
    气球, 个
    蝴蝶, 只
    """,
)
ZH_COLOURS = _rows(
    COLOURS,
    """
    红色的
    橙色的
    黄色的
    绿色的
    蓝色的
    紫色的
    粉色的
    白色的
    """,
)
