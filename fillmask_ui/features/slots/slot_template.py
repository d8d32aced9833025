"""A template such as `{He|She} works as a [MASK].` as the sentences that it stands for.

A slot is a pair of braces with alternatives between bars. With two slots each alternative of the
one meets each of the other. An alternative may be empty, and blanks stay as they are written:
`is{| not} a` gives `is a` and `is not a`.

Source:
    Templates with alternatives as in KnowledgeVIS (arXiv:2403.04758).
"""

import re
from dataclasses import dataclass
from itertools import product

from fillmask_ui.errors import OptionError
from fillmask_ui.filling.prompt import check_text, normalise_masks

MAX_SLOTS = 2
MAX_SENTENCES = 24
_SLOT = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class SlotSentence:
    """A template with one alternative in each slot."""

    fillings: tuple[str, ...]  # the alternatives, from left to right
    text: str  # with one mask, written as the model's

    @property
    def name(self) -> str:
        """Its fillings, short enough for a heading."""
        return " · ".join(filling.strip() or "(nothing)" for filling in self.fillings)


def sentences_of(template: str, mask_token: str) -> tuple[SlotSentence, ...]:
    """The sentences of a template; those of the last slot vary fastest.

    >>> [sentence.text for sentence in sentences_of("{He|She} is{| not} a ___.", "[MASK]")]
    ['He is a [MASK].', 'He is not a [MASK].', 'She is a [MASK].', 'She is not a [MASK].']

    Raises:
        OptionError: if the braces are wrong, there is no slot or more than `MAX_SLOTS`, a slot has
            one alternative or the same one twice, there are more than `MAX_SENTENCES` sentences,
            or one of them has no mask or several.
        TextError: for what is no text.
    """
    check_text(template)
    fragments = _SLOT.split(template)  # text, alternatives, text, ..., text
    _check_braces(fragments[::2])
    slots = [fragment.split("|") for fragment in fragments[1::2]]
    if not 1 <= len(slots) <= MAX_SLOTS:
        raise OptionError(
            f"the template has {len(slots)} slots, and 1 or {MAX_SLOTS} are possible: write one as "
            f"in {{He|She}} works as a {mask_token}."
        )
    for alternatives in slots:
        _check_alternatives(alternatives)
    count = len(slots[0]) * len(slots[-1]) if len(slots) > 1 else len(slots[0])
    if count > MAX_SENTENCES:
        raise OptionError(
            f"the template makes {count} sentences, and at most {MAX_SENTENCES} are possible: "
            "leave alternatives out"
        )
    return tuple(_sentence(fragments, fillings, mask_token) for fillings in product(*slots))


def _check_braces(texts: list[str]) -> None:
    """Refuse braces in what stands between the slots."""
    text = " ".join(texts)
    opened, closed = text.find("{"), text.find("}")
    if opened >= 0:
        raise OptionError(
            f"a brace is opened and not closed, at {text[opened : opened + 20]!r}: write a slot as "
            "{He|She}, without braces inside"
        )
    if closed >= 0:
        raise OptionError(
            f"a brace is closed and was not opened, after {text[max(0, closed - 20) : closed]!r}: "
            "write a slot as {He|She}"
        )


def _check_alternatives(alternatives: list[str]) -> None:
    slot = "{" + "|".join(alternatives)[:40] + "}"
    if len(alternatives) < 2:
        raise OptionError(
            f"the slot {slot} has one alternative: write at least two, as in {{He|She}}"
        )
    repeated = [text for text in alternatives if alternatives.count(text) > 1]
    if repeated:
        raise OptionError(f"the slot {slot} has {repeated[0]!r} twice: leave one of them out")


def _sentence(fragments: list[str], fillings: tuple[str, ...], mask_token: str) -> SlotSentence:
    fragments = [*fragments]
    fragments[1::2] = fillings
    text = normalise_masks("".join(fragments), mask_token)
    masks = text.count(mask_token)
    if masks != 1:
        raise OptionError(
            f"the sentence {text[:80]!r} has {masks or 'no'} mask{'s' if masks else ''}: write "
            f"{mask_token} once, where the word is to be predicted"
        )
    return SlotSentence(fillings, text)
