"""Whether an ONNX file gives the same logits wherever it runs: drift without labels, and alarms.

Definition. Texts are masked as by `evaluate`; each is one call of the whole graph. At the hidden
positions, r are the baseline's logits and c the candidate's, each less its mean at the position,
because softmax ignores a shift. SQNR is 10 log10(sum r^2 / sum (r - c)^2) in dB, over all
positions; the cosine is that of r and c, averaged; a flip is a hidden word whose most probable
token differs.

Rivals: with the shift the ratio is higher; random ids show drift that no text causes; the loss
hides changes that cancel between words.

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
from fillmask_ui.features.quantize.diagnosis import signal_and_noise, snr_db
from fillmask_ui.features.quantize.onnx_file import PLAIN, Logits, OnnxFile
from fillmask_ui.features.quantize.web_logits import web_logits
from fillmask_ui.intervals import (
    Limits,
    effective_number,
    judge,
    ratio_interval,
    share_interval,
)
from fillmask_ui.masking import HiddenTokens
from fillmask_ui.models.onnx_devices import CPU, Device
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Example, Progress, finite
from fillmask_ui.scoring import nll_nats
from fillmask_ui.tokenizers import same_tokenizer

LEVELS = ("none", "basic", "extended", "all")
BASELINE_LEVEL = "extended"  # the lowest at which products of bytes need not saturate
WEB = "WebAssembly"  # beside the execution providers
# The verdict is the worse of two: that on the SQNR, which must be at least so many dB, and that on
# the share of flips, whose whole interval must lie below a limit. NEAR_CHANCE is that of an
# evaluation; equal logits PASS; a file that fails to run is a REGRESSION.
LEAST_DB = {"PASS": 20.0, "AT_RISK": 10.0}
FLIPS = Limits(pass_below=0.10, risk_below=0.20)
# The worst last.
_VERDICTS = ("", "PASS", "INCONCLUSIVE", "AT_RISK", "REGRESSION", "NEAR_CHANCE")


@dataclass(frozen=True)
class CheckedSetup:
    """A provider and level to run the file on; all figures are None without finite logits."""

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
    def label(self) -> str:
        """Such as `CPU, all`."""
        level = {"": "baseline", PLAIN: "as plain ONNX Runtime"}.get(self.level, self.level)
        return f"{self.provider.replace('ExecutionProvider', '')}, {level}"


@dataclass(frozen=True)
class Check:
    """A file on all providers and levels that were asked for."""

    file: str
    baseline: str
    texts: int
    words: int  # hidden in them
    signature: str  # of the file and of the masks
    constants: tuple[str, ...]  # of `risky_constants`
    rows: tuple[CheckedSetup, ...]  # the baseline first

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
    devices: Sequence[Device] = (Device(),),
    web: bool = False,
    web_folder: Path | None = None,
) -> Generator[Progress | Check]:
    """Run a file on each device, and on `WEB`, at each level, and compare it with the baseline.

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
    hidden = [text.hidden for text in prepared(vocabulary, examples, config)]
    if not hidden:
        raise DataError("no word could be hidden in any of the texts: give more or longer ones")
    if baseline is None:
        baseline_name = f"{name} on CPU at the level {BASELINE_LEVEL}"
        reference = CheckedSetup(CPU, BASELINE_LEVEL)
        expected = list(file.run_on(Device(), BASELINE_LEVEL, hidden))
    else:
        baseline_name = baseline.signature.name
        reference = CheckedSetup(baseline_name, "")
        expected = [
            baseline.logits_at(
                text.input_ids[None],
                np.ones_like(text.input_ids)[None],
                np.zeros_like(text.cols),
                text.cols,
            )
            for text in hidden
        ]
    rows, signature = [_compare(reference, expected, expected, hidden)], [str(file.signature)]
    devices_by_name = {str(device): device for device in devices}
    setups = [
        *(CheckedSetup(name, level) for name in devices_by_name for level in (*LEVELS, PLAIN)),
        *(CheckedSetup(WEB, level) for level in LEVELS if web),
    ]
    for number, setup in enumerate(setups):
        if setup == reference:
            continue
        if setup.provider == WEB == rows[-1].provider and not rows[-1].verdict:
            continue  # a library that is missing at one level is missing at all
        yield Progress(f"Running it on {setup.label}…", number / len(setups))
        try:
            logits: Logits
            if setup.provider == WEB:
                logits, version = web_logits(file, setup.level, hidden, web_folder)
                signature.append(f"onnxruntime-web:{version}")
            else:
                logits = file.run_on(devices_by_name[setup.provider], setup.level, hidden)
            row = _compare(setup, logits, expected, hidden)
        except OptionError as error:
            row = replace(setup, alarms=(f"not measured: {error}",))
        except ModelError as error:
            row = replace(setup, verdict="REGRESSION", alarms=(f"failed: {error}",))
        rows.append(row)
    yield Check(
        file=name,
        baseline=baseline_name,
        texts=len(hidden),
        words=sum(len(text.cols) for text in hidden),
        signature="|".join(dict.fromkeys((*signature, config.signature))),
        constants=file.constants,
        rows=tuple(rows),
    )


def _compare(
    setup: CheckedSetup, logits: Logits, expected: Logits, hidden: Sequence[HiddenTokens]
) -> CheckedSetup:
    """The setup with the figures of its logits against those of the baseline."""
    sums, broken, largest, width = np.zeros(2), 0, 0.0, 0
    cosines, nll, flips = [], [], []
    for text_logits, baseline_logits, text in zip(logits, expected, hidden, strict=True):
        width = min(text_logits.shape[1], baseline_logits.shape[1])
        candidate = text_logits[:, :width].astype(np.float64)
        reference = baseline_logits[:, :width].astype(np.float64)
        finite_rows = (np.isfinite(candidate) & np.isfinite(reference)).all(axis=1)
        broken += int((~finite_rows).sum())
        if broken:
            continue
        flips.append(float((candidate.argmax(axis=1) != reference.argmax(axis=1)).sum()))
        nll.append(nll_nats(candidate, text.true_ids))
        largest = max(largest, float(np.abs(candidate - reference).max()))
        candidate = candidate - candidate.mean(axis=1, keepdims=True)
        reference = reference - reference.mean(axis=1, keepdims=True)
        sums += signal_and_noise(reference, candidate)
        sizes = np.linalg.norm(candidate, axis=1) * np.linalg.norm(reference, axis=1)
        products = (candidate * reference).sum(axis=1)
        cosines.append(products / np.maximum(sizes, np.finfo(float).tiny))
    if broken:
        alarm = f"NaN or infinite logits at {broken} hidden words, here or in the baseline"
        return replace(setup, verdict="REGRESSION", alarms=(alarm,))
    counts, losses = np.array([len(text_nll) for text_nll in nll], float), np.concatenate(nll)
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
    noise_verdict = next(
        (verdict for verdict, least_db in LEAST_DB.items() if noise_db >= least_db), "REGRESSION"
    )
    flip_verdict = judge(
        changed / total,
        interval,
        len(hidden),
        FLIPS,
        effective_texts=effective,
        near_chance=chance.is_near(mean),
        equal=noise_db == math.inf,
    ).label
    return replace(
        setup,
        verdict=max(noise_verdict, flip_verdict, key=_VERDICTS.index),
        alarms=tuple(filter(None, [chance.alarm("it", mean)])),
        sqnr_db=noise_db,
        cosine=float(np.concatenate(cosines).mean()),
        max_abs_logit_difference=largest,
        flips=changed,
        flip_share=changed / total,
        flip_share_interval_95=(interval.low, interval.high),
        mean_nll_nats=mean,
    )
