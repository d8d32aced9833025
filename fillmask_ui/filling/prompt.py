"""A text with masks, as people write it, to token ids with masks."""

import re
from collections.abc import Mapping

from fillmask_ui.errors import OptionError, TextError
from fillmask_ui.protocol import MaskedLM, Vocabulary
from fillmask_ui.records import Encoding, counted

MAX_CHARACTERS = 1_000_000  # about a second of tokenizing
_MASK_WORDS = r"\[mask\]|<mask>|_{3,}"


def normalise_masks(text: str, mask_token: str) -> str:
    """Write `[MASK]`, `<mask>` and `___`, in any case, as the model's own mask.

    >>> normalise_masks("The ____ sat on the <mask>, [mask].", "[MASK]")
    'The [MASK] sat on the [MASK], [MASK].'
    """
    spellings = re.compile(f"{re.escape(mask_token)}|{_MASK_WORDS}", re.IGNORECASE)
    return spellings.sub(lambda _: mask_token, text)


def encode_text(vocabulary: Vocabulary, text: str) -> Encoding:
    """A text to token ids, masks as in `normalise_masks`; a `TextError` if far too long."""
    if len(text) > MAX_CHARACTERS:
        raise TextError(
            f"the text has more than {MAX_CHARACTERS:,} characters, which no model reads as one: "
            "shorten it; nothing was cut"
        )
    return vocabulary.encode(normalise_masks(text, vocabulary.mask_token))


def check_text(text: object) -> None:
    """A `TextError` for bytes, or anything else that is no text."""
    if isinstance(text, bytes | bytearray):
        raise TextError(f"a text was wanted, and these are bytes: {text[:40]!r}; decode them first")
    if not isinstance(text, str):
        raise TextError(f"a text was wanted; the type was {type(text).__name__}")


def encode_masked(model: MaskedLM, text: str) -> Encoding:
    """A text with masks to token ids; a `TextError` if it is blank, has no mask or is too long."""
    vocabulary = model.vocabulary
    check_text(text)
    if not text.strip():
        raise TextError(
            f"the text is empty: write a sentence with {vocabulary.mask_token} where a word is "
            f"to be guessed, such as: The capital of France is {vocabulary.mask_token}."
        )
    encoding = encode_text(vocabulary, text)
    if vocabulary.mask_id not in encoding.ids:
        raise TextError(
            f"the text has no mask: put {vocabulary.mask_token} (or ___) where a word is to be "
            "guessed"
        )
    check_length(model, encoding)
    return encoding


def encode_unmasked(model: MaskedLM, text: str) -> Encoding:
    """A text without masks to token ids; a `TextError` if blank, with a mask or too long."""
    vocabulary = model.vocabulary
    check_text(text)
    if not text.strip():
        raise TextError("the text is empty: write a sentence, without a mask")
    encoding = encode_text(vocabulary, text)
    if all(encoding.special):
        raise TextError("the tokenizer leaves nothing of the text: write words that it knows")
    if vocabulary.mask_id in encoding.ids:
        raise TextError(
            f"the text has a mask, and here each word is hidden in turn: write a word in place of "
            f"{vocabulary.mask_token}"
        )
    check_length(model, encoding)
    return encoding


def check_length(model: MaskedLM, encoding: Encoding) -> None:
    """A `TextError` for a text that is longer than the model takes."""
    if len(encoding) > model.max_tokens:
        raise TextError(
            f"the text has {len(encoding):,} tokens and this model takes at most "
            f"{model.max_tokens:,}: shorten it by about {len(encoding) - model.max_tokens:,}; "
            "nothing was cut"
        )


def mask_positions(encoding: Encoding, vocabulary: Vocabulary) -> tuple[int, ...]:
    """Token indices of the masks, from left to right."""
    return tuple(i for i, token_id in enumerate(encoding.ids) if token_id == vocabulary.mask_id)


def mask_position(encoding: Encoding, vocabulary: Vocabulary, mask: int) -> int:
    """Token index of a mask, counted from 0, or an `OptionError`."""
    positions = mask_positions(encoding, vocabulary)
    if not 0 <= mask < len(positions):
        raise OptionError(
            f"the text has {counted(len(positions), 'mask')}, and none of this number (in Python "
            "the first is 0)"
        )
    return positions[mask]


def mask_range(encoding: Encoding, vocabulary: Vocabulary, mask: int) -> tuple[int, int]:
    """First character of a mask, counted from 0, and one past its last."""
    span = encoding.spans[mask_positions(encoding, vocabulary)[mask]]
    # A mask token may take in the blanks around it (RoBERTa's does on the left).
    start = encoding.text.index(vocabulary.mask_token, span.start)
    return start, start + len(vocabulary.mask_token)


def write_token(encoding: Encoding, vocabulary: Vocabulary, mask: int, token_id: int) -> str:
    """The text with a token in place of a mask, everything else as typed.

    Blanks are added or removed so that the model reads just that token: `##ing` joins the word to
    its left, a token that begins a word is separated from it.
    """
    position = mask_positions(encoding, vocabulary)[mask]
    expected = (*encoding.ids[:position], token_id, *encoding.ids[position + 1 :])
    start, end = mask_range(encoding, vocabulary, mask)
    left, right = encoding.text[:start], encoding.text[end:]
    word = vocabulary.word(token_id)
    joined, separate = left.rstrip() + word + right, left + word + right
    options = (
        separate,
        joined,
        left + " " + word + right,
        left + word + " " + right,
        left + " " + word + " " + right,
    )
    # Some sequences of tokens are those of no text.
    readable = joined if vocabulary.is_continuation(token_id) else separate
    return next((text for text in options if vocabulary.encode(text).ids == expected), readable)


def filled_text(encoding: Encoding, vocabulary: Vocabulary, token_ids: Mapping[int, int]) -> str:
    """`write_token` for the masks at the keys of `token_ids`; other masks stay."""
    mask, filled = 0, encoding
    for position in mask_positions(encoding, vocabulary):
        token_id = token_ids.get(position, vocabulary.mask_id)
        if token_id == vocabulary.mask_id:
            mask += 1
        elif mask < len(mask_positions(filled, vocabulary)):
            filled = vocabulary.encode(write_token(filled, vocabulary, mask, token_id))
    return filled.text


def split_words(text: str) -> tuple[str, ...]:
    """Candidate words as people type them, separated by commas or line ends.

    >>> split_words("sat, slept ,, souvenir, sat")
    ('sat', 'slept', 'souvenir')
    """
    words = (word.strip() for word in re.split(r"[,\n]", text))
    return tuple(dict.fromkeys(word for word in words if word))
