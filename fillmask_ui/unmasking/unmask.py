"""Iterative unmasking: many masks filled step by step.

Definition. Each step asks the model for the distributions at all positions that are still hidden,
chooses some of them (`choose_positions`), writes a token at each (`choose_tokens`), and goes on;
the last step fills all that are left. Tokens of one step do not see each other.

Rivals: filling all masks at once, as `fill` shows them, lets no token see another; the chain rule
from left to right (`joint_fillings`) sees the others but not the right side; a causal model has
only the left side.

Source:
    Mask-predict, arXiv:1904.09324; the order by confidence, MaskGIT, arXiv:2202.04200.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from fillmask_ui.batching import logits_of_batch, pad, plan_batches, windows
from fillmask_ui.errors import FillmaskError, OptionError
from fillmask_ui.filling.prompt import encode_masked
from fillmask_ui.filling.words import ROWS_PER_CALL, exponentials_at
from fillmask_ui.protocol import MaskedLM, Vocabulary
from fillmask_ui.scoring import target_nll_nats
from fillmask_ui.unmasking.config import UnmaskingConfig
from fillmask_ui.unmasking.decoding import Decoding
from fillmask_ui.unmasking.pieces import Pieces
from fillmask_ui.unmasking.steps import Step, Unmasked

# Tokens of a batch, padding counted, and positions asked about: M rows bring M x V logits.
BATCH_TOKENS = 2_048
BATCH_POSITIONS = 128
# Texts that are on their way at a time.
WINDOW_TEXTS = 64


def masked_prompt(
    vocabulary: Vocabulary, new_tokens: int, *, prefix: str = "", suffix: str = ""
) -> str:
    """A text with so many masks between a prefix and a suffix; either may be blank.

    Raises:
        OptionError: if fewer than one token is asked for.
    """
    if new_tokens < 1:
        raise OptionError(f"at least 1 token must be hidden; {new_tokens} were asked for")
    return " ".join(filter(str.strip, [prefix, *[vocabulary.mask_token] * new_tokens, suffix]))


def unmask(model: MaskedLM, text: str, config: UnmaskingConfig | None = None) -> Iterator[Step]:
    """Fill the masks of a text step by step.

    Args:
        model: from `load_model`.
        text: with one mask or more; `masked_prompt` writes one.
        config: how; the most probable token at the surest position first, if not given.

    Yields:
        Each step as it is made; who stops listening stops the work.

    Raises:
        TextError: if the text is blank, has no mask or is too long.
        ModelOutputError: if the model returns NaN.
    """
    decoding = _begun(model, text, config or UnmaskingConfig())
    while decoding.hidden:
        yield _step_together(model, [decoding])[0]


def finish(
    model: MaskedLM,
    text: str,
    config: UnmaskingConfig | None = None,
    on_step: Callable[[Step], None] | None = None,
) -> Unmasked:
    """`unmask` to its end; errors as there. `on_step` is called with each step as it is made."""
    decoding = _begun(model, text, config or UnmaskingConfig())
    while decoding.hidden:
        (step,) = _step_together(model, [decoding])
        if on_step is not None:
            on_step(step)
    return result_of(model, decoding)


def unmask_all(
    model: MaskedLM, texts: Iterable[str], config: UnmaskingConfig | None = None
) -> Iterator[Unmasked | FillmaskError]:
    """Many texts in batches; each gives what it gives alone.

    Yields:
        One result per text, in order; the error of a text that cannot be unmasked.
    """
    config = config or UnmaskingConfig()
    for window in windows(texts, lambda _: 1, max_size=WINDOW_TEXTS, max_items=WINDOW_TEXTS):
        decodings = _decodings(model, window, config)
        running = [one for one in decodings if isinstance(one, Decoding)]
        while running := [one for one in running if one.hidden]:
            for batch in _batches(running):
                _step_together(model, batch)
        for one in decodings:
            yield one if isinstance(one, FillmaskError) else result_of(model, one)


def result_of(model: MaskedLM, decoding: Decoding) -> Unmasked:
    """What a decoding that has come to its end leaves behind."""
    return Unmasked(
        text=decoding.text,
        ids=tuple(decoding.ids),
        start=decoding.initial[0],
        hidden=decoding.initial,
        steps=tuple(decoding.steps),
        pseudo_perplexity=pseudo_perplexity(model, decoding.ids),
        signature=f"{model.signature}|{decoding.config.signature}",
    )


def logits_of(model: MaskedLM, decodings: Sequence[Decoding]) -> list[np.ndarray]:
    """What the model says at the positions that some texts still hide, from one call.

    Returns:
        float32 [M, V] for each text with its M hidden positions.
    """
    batch = pad([np.array(one.ids) for one in decodings], model.vocabulary.pad_id)  # [B, T]
    counts = [len(one.hidden) for one in decodings]
    rows = np.repeat(np.arange(len(decodings)), counts)  # [sum of M]
    cols = np.array([place for one in decodings for place in one.hidden], np.int64)
    logits = logits_of_batch(model, batch, rows, cols)
    return np.split(logits, np.cumsum(counts)[:-1])


def pseudo_perplexity(model: MaskedLM, ids: Sequence[int]) -> float:
    """e^ of the mean NLL of each token of a text, hidden alone; special tokens left out.

    Args:
        model: from `load_model`.
        ids: T token ids with special tokens, as the model reads them.

    Source:
        Salazar et al. 2020, arXiv:1910.14659, as `PseudoPerplexity` measures texts.
    """
    vocabulary = model.vocabulary
    own = [place for place, token_id in enumerate(ids) if token_id not in vocabulary.special_ids]
    losses: list[float] = []
    for start in range(0, len(own), ROWS_PER_CALL):
        places = own[start : start + ROWS_PER_CALL]
        views = [[*ids[:place], vocabulary.mask_id, *ids[place + 1 :]] for place in places]
        log_probs = exponentials_at(model, views, places).log_probabilities
        losses += target_nll_nats(log_probs, np.array([ids[place] for place in places])).tolist()
    mean = math.fsum(losses) / len(losses)
    return math.exp(mean) if mean < 700 else math.inf


def _begun(model: MaskedLM, text: str, config: UnmaskingConfig) -> Decoding:
    (decoding,) = _decodings(model, [text], config)
    if isinstance(decoding, FillmaskError):
        raise decoding
    return decoding


def _decodings(
    model: MaskedLM, texts: Sequence[str], config: UnmaskingConfig
) -> list[Decoding | FillmaskError]:
    vocabulary, width = model.vocabulary, model.signature.vocabulary_size
    pieces = Pieces(vocabulary, width, fitting=config.pieces == "fitting")

    def begun(text: str) -> Decoding | FillmaskError:
        try:
            return Decoding(encode_masked(model, text), vocabulary, config, pieces)
        except FillmaskError as error:
            return error  # the others finish

    return [begun(text) for text in texts]


def _batches(decodings: Sequence[Decoding]) -> Iterator[list[Decoding]]:
    plan = plan_batches(
        [len(one.ids) for one in decodings],
        max_tokens=BATCH_TOKENS,
        targets=[len(one.hidden) for one in decodings],
        max_targets=BATCH_POSITIONS,
    )
    for indices in plan:
        yield [decodings[index] for index in indices]


def _step_together(model: MaskedLM, decodings: Sequence[Decoding]) -> list[Step]:
    """One step of each of some texts, from one call of the model."""
    started = time.perf_counter()
    logits = logits_of(model, decodings)
    seconds = time.perf_counter() - started
    return [one.advance(part, seconds) for one, part in zip(decodings, logits, strict=True)]
