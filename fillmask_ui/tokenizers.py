"""Whether two models have one tokenizer: then they may be compared token by token."""

from functools import lru_cache
from typing import Any

from fillmask_ui.protocol import Vocabulary

# Where tokenizers with one vocabulary still differ.
_PROBES = (
    "The quick brown fox jumps over the lazy dog.",
    "Ça coûte 1,234.56 € — n'est-ce pas? Über naïve Ångström",
    "don't WON'T   e.g. foo_bar  x=3\ttab\nline",
    "日本語のテキスト 한국어 текст हिन्दी نص",
    "souvenirs unhappiness antidisestablishmentarianism 🎉👩‍🔬",
)


def same_tokenizer(first: Vocabulary, second: Vocabulary) -> bool:
    """Equal strings for all ids, equal special tokens, and equal tokens for a few hard texts."""
    return first is second or _same_tokens(first, second)  # type: ignore[arg-type] # hashable


@lru_cache(maxsize=1)  # it compares every token
def _same_tokens(first: Any, second: Any) -> bool:
    names = ("size", "mask_id", "pad_id", "special_ids")
    return (
        all(getattr(first, name) == getattr(second, name) for name in names)
        and all(first.encode(probe).ids == second.encode(probe).ids for probe in _PROBES)
        and all(first.token(index) == second.token(index) for index in range(first.size))
    )
