"""A sentence with one masked word, and the word that is true there."""

from dataclasses import dataclass

from fillmask_ui.errors import OptionError, TextError
from fillmask_ui.filling.prompt import encode_masked, mask_positions, mask_range
from fillmask_ui.filling.words import split_into_tokens
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Encoding


@dataclass(frozen=True)
class MaskedPosition:
    """A sentence with exactly one mask."""

    encoding: Encoding
    position: int  # of the mask, among the tokens
    before: str  # the text to its left
    after: str  # and to its right


def find_masked_position(model: MaskedLM, text: str) -> MaskedPosition:
    """The mask of a text, in any spelling.

    A `TextError` if the text is blank or too long for the model, or has no mask or several.
    """
    encoding, vocabulary = encode_masked(model, text), model.vocabulary
    positions = mask_positions(encoding, vocabulary)
    if len(positions) > 1:
        raise TextError(
            f"the sentence has {len(positions)} masks, and one is needed: leave one "
            "[MASK] and write words for the others"
        )
    start, end = mask_range(encoding, vocabulary, 0)
    return MaskedPosition(encoding, positions[0], encoding.text[:start], encoding.text[end:])


def true_token(model: MaskedLM, masked: MaskedPosition, word: str) -> int:
    """Id of the one token that a word is at the mask.

    An `OptionError` if the word is blank, cannot be spelled or is several tokens.
    """
    if not word.strip():
        raise OptionError("the hidden word is missing: write the word that stands in the gap")
    (tokenized,) = split_into_tokens(model, masked.encoding, masked.position, [word])
    if len(tokenized.ids) > 1:
        tokens = ", ".join(model.vocabulary.token(token_id) for token_id in tokenized.ids)
        raise OptionError(
            f"for this model {word.strip()!r} is {len(tokenized.ids)} tokens ({tokens}), and one "
            "softmax is about one token: take a more common word"
        )
    return tokenized.ids[0]
