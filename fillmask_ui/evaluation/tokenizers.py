"""Whether two models cut text into the same tokens."""

from __future__ import annotations

from fillmask_ui.protocol import Vocabulary

# Case, accents, apostrophes, numbers, other scripts, emoji, blanks: where tokenizers with one
# vocabulary still differ.
_PROBES = (
    "The quick brown fox jumps over the lazy dog.",
    "Ça coûte 1,234.56 € — n'est-ce pas? Über naïve Ångström",
    "don't WON'T   e.g. foo_bar  x=3\ttab\nline",
    "日本語のテキスト 한국어 текст हिन्दी نص",
    "souvenirs unhappiness antidisestablishmentarianism 🎉👩‍🔬",
)


def same_tokenizer(first: Vocabulary, second: Vocabulary) -> bool:
    """Equal strings for all ids, equal special tokens, and equal tokens for a few hard texts."""
    if first is second:
        return True
    numbers = [
        (entry.size, entry.mask_id, entry.pad_id, entry.special_ids) for entry in (first, second)
    ]
    if numbers[0] != numbers[1]:
        return False
    if any(first.encode(probe).ids != second.encode(probe).ids for probe in _PROBES):
        return False
    return all(first.token(index) == second.token(index) for index in range(first.size))
