"""Whether an ONNX file answers alike wherever it may run: drift without labels, and alarms.

Definition. Texts are masked as by `evaluate`, each is one call of the whole graph. At the hidden
positions r are the baseline's logits and c the candidate's, less their mean at each position, as
softmax sees no shift. SQNR is 10 log10(sum r^2 / sum (r - c)^2) in dB, over all positions; the
cosine is that of r and c, averaged; a flip is a hidden word whose most probable token is another.

Rivals: with its shift the ratio is higher; random ids show drift where no text ever is; the loss
moves little where one word makes up for another.

Source:
    SQNR of outputs: ONNX Runtime, quantization/qdq_loss_debug.py. The shift: Goodfellow et al.
    2016, Deep Learning, section 6.2.2.3. Flips: Dutta et al. 2024, arXiv:2407.09141.
"""

import math
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fillmask_ui.errors import DataError, ModelError, OptionError
from fillmask_ui.evaluation.chance import Chance
from fillmask_ui.evaluation.evaluation_config import EvaluationConfig
from fillmask_ui.evaluation.measure import prepared
from fillmask_ui.features.quantize.diagnosis import powers, snr_db
from fillmask_ui.features.quantize.onnx_file import CPU, PLAIN, Logits, OnnxFile
from fillmask_ui.features.quantize.web_logits import web_logits
from fillmask_ui.intervals import (
    Limits,
    effective_number,
    judge,
    ratio_interval,
    share_interval,
)
from fillmask_ui.masking import HiddenTokens
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Example, Progress, finite
from fillmask_ui.scoring import nll_nats
from fillmask_ui.tokenizers import same_tokenizer

LEVELS = ("none", "basic", "extended", "all")
BASELINE_LEVEL = "extended"  # the lowest at which products of bytes need not saturate
WEB = "WebAssembly"  # beside the execution providers
# The verdict is the worst of that on the SQNR, which is at least so many dB, and of that on the
# share of flips, all of whose interval lies below; NEAR_CHANCE as of an evaluation; PASS for equal
# logits; REGRESSION where it fails.
LEAST_DB = {"PASS": 20.0, "AT_RISK": 10.0}
FLIPS = Limits(pass_below=0.10, risk_below=0.20)
# The worst last.
_VERDICTS = ("", "PASS", "INCONCLUSIVE", "AT_RISK", "REGRESSION", "NEAR_CHANCE")


@dataclass(frozen=True)
class Row:
    """One way to run the file. Without logits, or with NaN among them, all figures are None."""

    provider: str  # such as `CPUExecutionProvider`, `WebAssembly`; of a baseline its name
    level: str  # of graph optimization, or `PLAIN`; blank for a baseline
    verdict: str = ""  # blank if it was not measured
    alarms: tuple[str, ...] = ()  # NaN, near chance; why it failed or was not measured
    sqnr_db: float | None = None  # infinite for equal logits
    cosine: float | None = None
    max_abs_logit_difference: float | None = None
    flips: int | None = None
    flip_share: float | None = None
    flip_share_interval_95: tuple[float, float] | None = None
    mean_nll_nats: float | None = None  # of the true words

    @property
    def way(self) -> str:
        """Such as `CPU, all`."""
        level = {"": "baseline", PLAIN: "as plain ONNX Runtime"}.get(self.level, self.level)
        return f"{self.provider.removesuffix('ExecutionProvider')}, {level}"


@dataclass(frozen=True)
class Check:
    """A file in all ways that were asked for."""

    file: str
    baseline: str
    texts: int
    words: int  # hidden in them
    signature: str  # of the file and of the masks
    constants: tuple[str, ...]  # of `risky_constants`
    rows: tuple[Row, ...]  # the baseline first

    @property
    def verdict(self) -> str:
        """The worst of all rows."""
        return max((row.verdict for row in self.rows), key=_VERDICTS.index)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values; null for what is infinite or not there."""
        return finite({**asdict(self), "verdict": self.verdict})


def check(
    file: OnnxFile,
    examples: Iterable[Example],
    baseline: MaskedLM | None = None,
    *,
    providers: Sequence[str] = (CPU,),
    web_folder: Path | None = None,
) -> Generator[Progress | Check]:
    """Run a file on each provider (or `WEB`) and level, and compare it with the baseline.

    The baseline is a model in its own runtime, or the file on the CPU at `BASELINE_LEVEL`;
    `web_folder` as of `web_logits`. An `OptionError` if the two have different tokenizers, a
    `DataError` if nothing can be hidden in the texts.
    """
    name, vocabulary = file.signature.name, file.vocabulary
    if baseline is not None and not same_tokenizer(vocabulary, baseline.vocabulary):
        raise OptionError(
            f"{name} and {baseline.signature.name} have different tokenizers: give the model that "
            "it was made from as the baseline"
        )
    config = EvaluationConfig().resolved(file.max_tokens, (baseline or file).max_tokens)
    hidden = [own.hidden for own in prepared(vocabulary, examples, config)]
    if not hidden:
        raise DataError("no word could be hidden in any of the texts: give more or longer ones")
    if baseline is None:
        said = f"{name} on CPU at the level {BASELINE_LEVEL}"
        first = Row(CPU, BASELINE_LEVEL)
        wanted = list(file.run_on(CPU, BASELINE_LEVEL, hidden))
    else:
        said, first = baseline.signature.name, Row(baseline.signature.name, "")
        wanted = [
            baseline.logits_at(ids[None], np.ones_like(ids)[None], np.zeros_like(cols), cols)
            for ids, cols in ((text.input_ids, text.cols) for text in hidden)
        ]
    rows, signature = [_compared(first, wanted, wanted, hidden)], [str(file.signature)]
    levels = {provider: LEVELS if provider == WEB else (*LEVELS, PLAIN) for provider in providers}
    ways = [Row(provider, level) for provider in providers for level in levels[provider]]
    for number, way in enumerate(ways):
        if way == first or (way.provider == WEB == rows[-1].provider and not rows[-1].verdict):
            continue  # what is not there at one level is there at none
        yield Progress(f"Running it on {way.way}…", number / len(ways))
        try:
            got: Logits = file.run_on(way.provider, way.level, hidden)
            if way.provider == WEB:
                got, version = web_logits(file, way.level, hidden, web_folder)
                signature.append(f"onnxruntime-web:{version}")
            row = _compared(way, got, wanted, hidden)
        except OptionError as error:
            row = replace(way, alarms=(f"not measured: {error}",))
        except ModelError as error:
            row = replace(way, verdict="REGRESSION", alarms=(f"failed: {error}",))
        rows.append(row)
    sizes = len(hidden), sum(len(text.cols) for text in hidden)
    stamp = "|".join(dict.fromkeys((*signature, config.signature)))
    yield Check(name, said, *sizes, stamp, file.constants, tuple(rows))


def _compared(row: Row, logits: Logits, wanted: Logits, hidden: Sequence[HiddenTokens]) -> Row:
    """With the figures of logits beside those that are wanted."""
    sums, broken, largest, width = np.zeros(2), 0, 0.0, 0
    cosines, nll, flips = [], [], []
    for own, base, text in zip(logits, wanted, hidden, strict=True):
        width = min(own.shape[1], base.shape[1])
        got, want = (each[:, :width].astype(np.float64) for each in (own, base))
        broken += int((~(np.isfinite(got) & np.isfinite(want)).all(axis=1)).sum())
        if broken:
            continue
        flips.append(float((got.argmax(axis=1) != want.argmax(axis=1)).sum()))
        nll.append(nll_nats(got, text.true_ids))
        largest = max(largest, float(np.abs(got - want).max()))
        got, want = (each - each.mean(axis=1, keepdims=True) for each in (got, want))
        sums += powers(want, got)
        sizes = np.linalg.norm(got, axis=1) * np.linalg.norm(want, axis=1)
        cosines.append((got * want).sum(axis=1) / np.maximum(sizes, np.finfo(float).tiny))
    if broken:
        alarm = f"NaN or infinite logits at {broken} hidden words, here or in the baseline"
        return replace(row, verdict="REGRESSION", alarms=(alarm,))
    counts, losses = np.array([len(own) for own in nll], float), np.concatenate(nll)
    changed, total, mean = int(sum(flips)), len(losses), float(losses.mean())
    # The bootstrap knows nothing of what happened to no word or to all. Words of one text are not
    # independent: these are as many trials as there are texts that count.
    effective = effective_number(counts)
    interval = ratio_interval(np.array(flips), counts) if 0 < changed < total else None
    interval = interval or share_interval(changed / total * effective, effective)
    interval = interval.map(lambda share: min(max(share, 0.0), 1.0))  # of few texts
    chance = Chance.of(
        Counter(np.concatenate([text.ids for text in hidden]).tolist()),
        Counter(np.concatenate([text.true_ids for text in hidden]).tolist()),
        width,
    )
    noise_db = snr_db(sums)
    by_noise = (own for own, least in LEAST_DB.items() if noise_db >= least)
    by_flips = judge(
        changed / total,
        interval,
        len(hidden),
        FLIPS,
        effective_texts=effective,
        near_chance=chance.is_near(mean),
        equal=noise_db == math.inf,
    ).label
    verdict = max(next(by_noise, "REGRESSION"), by_flips, key=_VERDICTS.index)
    cosine, span = float(np.concatenate(cosines).mean()), (interval.low, interval.high)
    figures = noise_db, cosine, largest, changed, changed / total, span, mean
    alarms = tuple(filter(None, [chance.alarm("it", mean)]))
    return Row(row.provider, row.level, verdict, alarms, *figures)
