"""Pseudo-perplexity: what perplexity becomes for a model that reads both sides.

Definition: hide one token at a time, sum -ln P(token | all others) over all tokens of all texts,
divide by their number, and take e^ of it.

Rivals: the perplexity of a causal model sees the left context only, so values do not compare;
cross-entropy costs a twentieth, but rests on a draw of tokens.

Source:
    Salazar et al. 2020, arXiv:1910.14659.
"""

from dataclasses import dataclass

from fillmask_ui.evaluation.metrics.each_token import EachToken
from fillmask_ui.evaluation.metrics.metric import exp, expm1
from fillmask_ui.evaluation.running_sums import TextSums, loss_difference
from fillmask_ui.intervals import Estimate, estimate_ratio


@dataclass(frozen=True)
class PseudoPerplexity(EachToken):
    """e^ of the mean NLL of every token, each hidden alone."""

    name = "pseudo-perplexity"
    label = "Pseudo-perplexity"
    note = "Each token is hidden once, alone: the most thorough and the slowest."
    figure_label = "Pseudo-perplexity"
    figure_key = "pseudo_perplexity"
    unit = ""

    def figure(self, texts: TextSums) -> Estimate:
        return texts.mean_nll_nats.map(exp)

    def change(self, candidate: TextSums, reference: TextSums) -> Estimate:
        """Of two tokenizers both perplexities are taken over the tokens of the reference.

        e^ of a loss per token means another thing where the tokens are others.
        """
        differences = loss_difference(candidate.nll_nats, reference.nll_nats)
        by_token = estimate_ratio(
            differences, reference.tokens, candidate.quick, weights=reference.nll_nats
        )
        return by_token.map(expm1)
