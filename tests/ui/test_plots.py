"""Colours of charts."""

import pytest

from fillmask_ui.show.charts import chart as plots


@pytest.mark.parametrize("ratio", ["light", "dark"])
def test_colours_can_be_seen_on_both_backgrounds(ratio):
    """WCAG 2.2, criterion 1.4.11: graphics need a contrast of 3 to 1."""

    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    background = luminance({"light": "#fafaf9", "dark": "#171513"}[ratio])
    for colour in (plots.REFERENCE, plots.CANDIDATE, plots.LOSS, plots.MUTED):
        high, low = sorted((luminance(colour), background), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 3
