"""How the page looks: a light theme on top of a built-in one, local fonts, no foreign host."""

import gradio as gr
from gradio.themes.utils import fonts

# The same in both themes.
_SHAPES = {
    "block_border_width": "0px",
    "block_shadow": "none",
    "block_padding": "0px",
    "block_title_text_weight": "600",
    "input_border_width": "1px",
    "input_shadow": "none",
    "input_shadow_focus": "0 0 0 3px rgba(13, 148, 136, .18)",
    "button_primary_text_color": "white",
}
# In the light theme and in the dark one.
_COLOURS = {
    "body_background_fill": ("*neutral_50", "#171513"),
    "body_text_color": ("*neutral_800", "*neutral_200"),
    "body_text_color_subdued": ("*neutral_600", "*neutral_400"),
    "background_fill_primary": ("white", "#211e1b"),
    "block_background_fill": ("transparent", "transparent"),
    "block_label_background_fill": ("transparent", "transparent"),
    "block_title_text_color": ("*neutral_800", "*neutral_200"),
    "block_info_text_color": ("*neutral_600", "*neutral_400"),
    "input_background_fill": ("white", "#211e1b"),
    "input_border_color": ("*neutral_300", "*neutral_700"),
    "input_border_color_focus": ("*primary_600", "*primary_400"),
    "button_primary_background_fill": ("*primary_700", "*primary_700"),
    "button_primary_background_fill_hover": ("*primary_800", "*primary_800"),
    "link_text_color": ("*primary_700", "*primary_300"),
    "link_text_color_active": ("*primary_700", "*primary_300"),
    "link_text_color_hover": ("*primary_800", "*primary_200"),
    "link_text_color_visited": ("*primary_700", "*primary_300"),
    "button_secondary_background_fill": ("white", "*neutral_800"),
    "button_secondary_border_color": ("*neutral_300", "*neutral_700"),
    "slider_color": ("*primary_600", "*primary_500"),
}
# Relative to the page's own size of letters, which grows with the screen.
_TEXT = gr.themes.sizes.Size(
    xxs="0.65rem",
    xs="0.75rem",
    sm="0.85rem",
    md="1rem",
    lg="1.1rem",
    xl="1.35rem",
    xxl="1.65rem",
)


def _fonts(name: str, *fallbacks: str) -> list[fonts.Font | str]:
    # The SemiBold files of Plex lack most letters.
    return [fonts.LocalFont(name, weights=(400, 700)), *fallbacks]


def theme() -> gr.themes.Base:
    """Paper and ink, one accent; the same in light and dark."""
    light = {name: pair[0] for name, pair in _COLOURS.items()}
    dark = {f"{name}_dark": pair[1] for name, pair in _COLOURS.items()}
    return gr.themes.Base(
        primary_hue=gr.themes.colors.teal,
        secondary_hue=gr.themes.colors.amber,
        neutral_hue=gr.themes.colors.stone,
        radius_size=gr.themes.sizes.radius_md,
        text_size=_TEXT,
        font=_fonts("IBM Plex Sans", "system-ui", "sans-serif"),
        font_mono=_fonts("IBM Plex Mono", "ui-monospace", "monospace"),
    ).set(**_SHAPES, **light, **dark)
