"""How the page looks: a light theme on top of a built-in one, local fonts, no foreign host."""

from __future__ import annotations

import gradio as gr
from gradio.themes.utils import fonts


def theme() -> gr.themes.Base:
    """Paper and ink, one accent; the same in light and dark."""
    return gr.themes.Base(
        primary_hue=gr.themes.colors.teal,
        secondary_hue=gr.themes.colors.amber,
        neutral_hue=gr.themes.colors.stone,
        radius_size=gr.themes.sizes.radius_md,
        font=(
            # Their SemiBold files lack most letters.
            fonts.LocalFont("IBM Plex Sans", weights=(400, 700)),
            "system-ui",
            "sans-serif",
        ),
        font_mono=(
            fonts.LocalFont("IBM Plex Mono", weights=(400, 700)),
            "ui-monospace",
            "monospace",
        ),
    ).set(
        body_background_fill="*neutral_50",
        body_background_fill_dark="#171513",
        body_text_color="*neutral_800",
        body_text_color_dark="*neutral_200",
        body_text_color_subdued="*neutral_600",
        body_text_color_subdued_dark="*neutral_400",
        background_fill_primary="white",
        background_fill_primary_dark="#211e1b",
        block_background_fill="transparent",
        block_background_fill_dark="transparent",
        block_border_width="0px",
        block_shadow="none",
        block_padding="0px",
        block_label_background_fill="transparent",
        block_label_background_fill_dark="transparent",
        block_title_text_color="*neutral_800",
        block_title_text_color_dark="*neutral_200",
        block_title_text_weight="600",
        block_info_text_color="*neutral_600",
        block_info_text_color_dark="*neutral_400",
        input_background_fill="white",
        input_background_fill_dark="#211e1b",
        input_border_width="1px",
        input_border_color="*neutral_300",
        input_border_color_dark="*neutral_700",
        input_border_color_focus="*primary_600",
        input_border_color_focus_dark="*primary_400",
        input_shadow="none",
        input_shadow_focus="0 0 0 3px rgba(13, 148, 136, .18)",
        button_primary_background_fill="*primary_700",
        button_primary_background_fill_dark="*primary_700",
        button_primary_background_fill_hover="*primary_800",
        button_primary_background_fill_hover_dark="*primary_600",
        button_primary_text_color="white",
        button_secondary_background_fill="white",
        button_secondary_background_fill_dark="*neutral_800",
        button_secondary_border_color="*neutral_300",
        button_secondary_border_color_dark="*neutral_700",
        slider_color="*primary_600",
        slider_color_dark="*primary_500",
    )
