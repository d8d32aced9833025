"""Which tokens may be written at a hidden position.

Special tokens never are, nor columns of the logits without a token. By choice sub-word pieces
are written only where there is a word to go on with: behind a word that was hidden itself and is
filled by now, or behind a letter of the text without a blank in between.
"""

from collections.abc import Sequence

import numpy as np

from fillmask_ui.protocol import Vocabulary
from fillmask_ui.records import Encoding


class Pieces:
    """What may be written where; made once for many texts.

    Args:
        vocabulary: of the model.
        width: V, columns of its logits.
        fitting: whether sub-word pieces need a word to go on with.
    """

    def __init__(self, vocabulary: Vocabulary, width: int, *, fitting: bool) -> None:
        self._vocabulary = vocabulary
        self._fitting = fitting
        never = {*vocabulary.special_ids, vocabulary.mask_id, vocabulary.unk_id}
        self._known = np.zeros(width, bool)  # [V]
        self._known[: vocabulary.size] = True
        self._known[[token_id for token_id in never if token_id is not None]] = False
        if fitting:
            pieces = [i for i in np.flatnonzero(self._known).tolist() if self._goes_on(i)]
            self._pieces = np.zeros(width, bool)  # [V]
            self._pieces[pieces] = True
            # Byte-level vocabularies write the first word of a text without the mark of a blank.
            first = vocabulary.encode_word("a", "")[:1]
            self._bare_start = any(map(vocabulary.is_continuation, first))

    def allowed(self, encoding: Encoding, ids: Sequence[int], hidden: Sequence[int]) -> np.ndarray:
        """Bool [M, V]: which tokens may be written at each hidden position.

        Args:
            encoding: of the text with all its masks.
            ids: T token ids as they stand now.
            hidden: M positions.
        """
        if not self._fitting:
            return np.broadcast_to(self._known, (len(hidden), len(self._known)))
        fits = np.array([self._continues(encoding, ids, position) for position in hidden])
        return self._known & (fits[:, None] | ~self._pieces)

    def _goes_on(self, token_id: int) -> bool:
        word = self._vocabulary.word(token_id)
        return word[:1].isalnum() and self._vocabulary.is_continuation(token_id)

    def _continues(self, encoding: Encoding, ids: Sequence[int], position: int) -> bool:
        """Whether a piece at a position would go on with a word."""
        before = position - 1
        if before < 0 or encoding.special[before]:
            return self._bare_start
        given = encoding.ids[before] != self._vocabulary.mask_id
        if given and encoding.spans[position].start > encoding.spans[before].end:
            return False  # a blank of the text stands in between
        still_hidden = ids[before] == self._vocabulary.mask_id
        return not still_hidden and self._vocabulary.word(ids[before])[-1:].isalnum()
