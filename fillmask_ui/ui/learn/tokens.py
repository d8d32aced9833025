"""What the figures call a token, and the text that two chapters mask."""

from fillmask_ui.protocol import Vocabulary
from fillmask_ui.show.words import token_name

# With this seed the text has chosen tokens of all three kinds in a vocabulary of whole words.
TEXT = "The old woman drinks a cup of tea and her cat waits under the table."
SEED = 4
MOST_SEED = 9_999  # of the dial


def name_of(vocabulary: Vocabulary, token_id: int, position: int) -> str:
    """A token at a place of a text, as people write it; what begins the text ends no word."""
    if token_id == vocabulary.mask_id:
        return "[MASK]"
    ending = vocabulary.is_continuation(token_id) and position > 1
    return token_name(vocabulary.token(token_id), vocabulary.word(token_id), ending)
