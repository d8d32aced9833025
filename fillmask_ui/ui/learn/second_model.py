"""The second model of a comparison: one of those at hand, with the tokenizer of the first."""

from collections.abc import Callable

from fillmask_ui.comparing.word_contrast import same_tokenizer
from fillmask_ui.errors import ModelError
from fillmask_ui.protocol import MaskedLM, Vocabulary
from fillmask_ui.show.words import token_name
from fillmask_ui.ui.background import Report, Waiting
from fillmask_ui.ui.figure import Asked

SAME = "same"  # what the control holds for the model itself


def second_model(asked: Asked, reference: str) -> MaskedLM | Waiting:
    """The model of a reference, or the first one for `SAME`.

    Raises:
        ModelError: if it cannot be loaded, or has another tokenizer than the first.
    """
    if reference == SAME:
        return asked.model
    state = asked.session.model_soon(reference)
    if isinstance(state, Waiting):
        return state
    second = state.result
    if not same_tokenizer(asked.model.vocabulary, second.vocabulary):
        raise ModelError(
            f"{second.signature.name} cuts texts into other tokens than "
            f"{asked.model.signature.name}, so that their losses per token do not compare: choose "
            "a second model with the same tokenizer"
        )
    return second


def counted(report: Report, total: int, what: str) -> Callable[[int], None]:
    """Reports a number done as `12 of 60 texts`."""
    return lambda done: report(Waiting(f"{done} of {total} {what}", done / total))


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
