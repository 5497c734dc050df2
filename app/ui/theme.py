"""How the screens look: one accent on warm neutrals, the system's own fonts, light and dark."""

from __future__ import annotations

from pathlib import Path

import gradio as gr
from gradio.themes.utils import colors, sizes

STYLE_SHEET = Path(__file__).with_name("style.css")

_FERN = colors.Color(
    name="fern",
    c50="#f1f7f3",
    c100="#dcebe1",
    c200="#bad7c5",
    c300="#8fbca1",
    c400="#619d7b",
    c500="#41805e",
    c600="#2f6649",
    c700="#27523c",
    c800="#214231",
    c900="#1b3628",
    c950="#0e1f17",
)
# Names only: a font that has to be fetched would be missing wherever there is no network.
_FONTS = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Noto Sans", "sans-serif")
_MONOSPACED = ("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace")


def perennial_theme() -> gr.themes.Base:
    """Returns the theme of both pages."""
    theme = gr.themes.Base(
        primary_hue=_FERN,
        secondary_hue=_FERN,
        neutral_hue=colors.stone,
        text_size=sizes.text_md,
        spacing_size=sizes.spacing_lg,
        radius_size=sizes.radius_lg,
        font=_FONTS,
        font_mono=_MONOSPACED,
    )
    return theme.set(
        body_background_fill="#fbfaf8",
        body_background_fill_dark="#161513",
        body_text_color_subdued="*neutral_600",
        body_text_color_subdued_dark="*neutral_400",
        block_background_fill="white",
        block_background_fill_dark="#1e1d1a",
        block_border_width="1px",
        block_border_color="*neutral_200",
        block_border_color_dark="*neutral_800",
        block_shadow="none",
        block_label_background_fill="transparent",
        block_label_background_fill_dark="transparent",
        block_label_border_width="0px",
        block_title_text_weight="500",
        input_background_fill="white",
        input_background_fill_dark="#262420",
        input_border_width="1px",
        input_border_width_dark="1px",
        input_border_color="*neutral_300",
        input_border_color_dark="*neutral_700",
        input_border_color_focus="*primary_400",
        button_primary_background_fill="*primary_600",
        button_primary_background_fill_hover="*primary_700",
        button_primary_background_fill_dark="*primary_600",
        button_primary_background_fill_hover_dark="*primary_500",
        button_primary_text_color="white",
        button_primary_text_color_dark="white",
        link_text_color="*primary_600",
        link_text_color_dark="*primary_300",
        link_text_color_visited="*primary_600",
        link_text_color_visited_dark="*primary_300",
    )
