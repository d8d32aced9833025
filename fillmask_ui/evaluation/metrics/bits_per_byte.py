"""Bits per byte: pseudo-log-likelihood that compares models with different tokenizers.

Definition: hide one token at a time, sum -log2 P(token | all others) over all tokens of all texts,
and divide by the number of bytes that the texts take in UTF-8.

Rivals: pseudo-perplexity divides by the number of tokens, so a tokenizer with longer tokens looks
worse at the same knowledge of a text; bits per character depend on the script, as one Chinese
character says as much as several Latin ones.

Source:
    The unit of The Pile, arXiv:2101.00027, section 3.1, there for causal models.
"""

import math
from dataclasses import dataclass

from fillmask_ui.evaluation.metrics.pseudo_perplexity import PseudoPerplexity
from fillmask_ui.evaluation.rows import MaskedText, covered


@dataclass(frozen=True)
class BitsPerByte(PseudoPerplexity):
    """Loss of every token, each hidden alone, in bits per byte of the text.

    >>> BitsPerByte().figure(math.log(2))  # ln 2 nats per byte
    1.0
    """

    name = "bits-per-byte"
    label = "Bits per byte"
    note = "Each token is hidden once, alone; the loss per byte compares any two tokenizers."
    figure_label = "Bits per byte"
    figure_key = "bits_per_byte"
    unit = "bits"
    exponential = False

    def units(self, text: MaskedText) -> float:
        """Bytes of the text, but for characters of tokens that are not scored."""
        scored = covered(text.text, text.spans) if text.left_out else range(len(text.text))
        first, end = len(text.text) - len(text.text.lstrip()), len(text.text.rstrip())
        return sum(
            len(text.text[place].encode("utf-8", "surrogatepass"))
            for place in range(first, end)
            if place in scored or text.text[place].isspace()
        )

    def figure(self, nll_per_unit_nats: float) -> float:
        return nll_per_unit_nats / math.log(2)
