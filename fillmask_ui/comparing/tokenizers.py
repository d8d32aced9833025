"""Whether two models can be compared token by token."""

from dataclasses import dataclass

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
    known = next(iter(_COMPARED), None)
    if known is None or known.first is not first or known.second is not second:
        known = _Compared(first, second, _same_tokenizer(first, second))
        _COMPARED[:] = [known]
    return known.alike


@dataclass(frozen=True, eq=False)
class _Compared:
    first: Vocabulary
    second: Vocabulary
    alike: bool


# The last pair: it is asked about several times, and each looks at every token.
_COMPARED: list[_Compared] = []


def _same_tokenizer(first: Vocabulary, second: Vocabulary) -> bool:
    if first is second:
        return True
    ids = ("size", "mask_id", "pad_id", "special_ids")
    return (
        all(getattr(first, name) == getattr(second, name) for name in ids)
        and all(first.encode(probe).ids == second.encode(probe).ids for probe in _PROBES)
        and all(first.token(index) == second.token(index) for index in range(first.size))
    )
