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

from fillmask_ui.evaluation.metrics.each_token import EachToken
from fillmask_ui.evaluation.metrics.metric import Contribution
from fillmask_ui.evaluation.rows import EvaluatedText, TokenScores, covered


@dataclass(frozen=True)
class BitsPerByte(EachToken):
    """Loss of every token, each hidden alone, in bits per byte of the text."""

    name = "bits-per-byte"
    label = "Bits per byte"
    note = "Each token is hidden once, alone; the loss per byte compares any two tokenizers."
    figure_label = "Bits per byte"
    figure_key = "bits_per_byte"
    unit = "bits"

    def contribution(self, row: EvaluatedText, scores: TokenScores) -> Contribution:
        """Bits, and bytes of the text but for characters of tokens that are not scored."""
        text = row.text
        scored = covered(text, row.spans) if row.left_out else range(len(text))
        inside = range(len(text) - len(text.lstrip()), len(text.rstrip()))
        counted = [text[index] for index in inside if index in scored or text[index].isspace()]
        size_bytes = len("".join(counted).encode("utf-8", "surrogatepass"))
        return Contribution(scores.nll_nats.sum() / math.log(2), size_bytes)
