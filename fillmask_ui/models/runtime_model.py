"""What all runtimes share: calls of limited size, a probe, one limit, one signature.

Axes: B texts, T tokens, M asked positions, V vocabulary, H hidden size.
"""

import hashlib
import importlib
import json
import platform
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, overload

import numpy as np

from fillmask_ui import __version__
from fillmask_ui.batching import MOST_CALLS, PaddedBatch, pad, sharing
from fillmask_ui.errors import ModelError, ModelOutputError
from fillmask_ui.filling import fill
from fillmask_ui.models.model_choice import ModelChoice, cores
from fillmask_ui.models.model_files import TOKENIZER, ModelConfig, ModelFiles
from fillmask_ui.models.vocabulary import TokenizerVocabulary
from fillmask_ui.models.weights import weights_sha256
from fillmask_ui.protocol import Vocabulary
from fillmask_ui.records import Filling, ModelSignature

# Most bytes of logits of all positions [B, T, V], over all concurrent calls.
_RUN_BYTES = 256 << 20
# Largest difference of logits at the asked positions from those of the whole model on the probe,
# relative to the largest logit: rounding in half precision depends on the number of rows.
TOLERANCE = {"float64": 1e-4, "float32": 1e-4, "bfloat16": 5e-2, "float16": 5e-3}
# Which texts share a call -> what the signature says of it. Padding is read as text by mixers of
# tokens (FNet), convolutions (ConvBERT), and graphs whose mask was lost; each is tried in turn.
ANY_LENGTH, ONE_LENGTH, ALONE = "any length", "one length", "alone"
SHARING = {
    ANY_LENGTH: "",
    ONE_LENGTH: "padding changes the logits, so only texts of one length share a call",
    ALONE: "other texts in a call change the logits, so each text is a call of its own",
}
FULL_LOGITS = "logits are computed at all positions: this architecture's head cannot be cut"
TEXT_BY_TEXT = "activations are quantized text by text"
_DEFAULT_TOKENS = 512
# Features of a CPU that choose between kernels with different rounding or saturation.
_X86 = ("avx2", "avx_vnni", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16", "amx_int8")
_FEATURES = (*_X86, "asimddp", "i8mm", "bf16", "sve")  # and of ARM

_Run = Callable[[PaddedBatch, np.ndarray, np.ndarray], np.ndarray]


class RuntimeModel(ABC):
    """`MaskedLM` over a library that runs it."""

    vocabulary: Vocabulary  # set by `_load` once the weights are open
    signature: ModelSignature
    max_tokens: int
    memory_bytes: int  # estimate for the loaded weights
    _width: int  # V
    _batch: int | None = None  # the only B of a call, None for any
    _length: int | None = None  # the only T of a call, None for any
    _sharing = ANY_LENGTH  # which texts share a call, a key of `SHARING`
    _chunk = 0  # tokens that a layer reads at once: padding may show in longer texts alone
    _logit_bytes = 0  # of one logit, where a call computes those of all positions

    def __init__(
        self,
        files: ModelFiles,
        read_vocabulary: Callable[[], TokenizerVocabulary],
        config: ModelConfig,
        choice: ModelChoice,
    ) -> None:
        self.files, self._config, self._name = files, config, files.name
        self.threads = choice.threads
        self.concurrent_calls = min(choice.threads or MOST_CALLS, cores(), MOST_CALLS)
        # Libraries open weights on one core and without Python's lock: read the rest meanwhile.
        with ThreadPoolExecutor(2, "load") as self._beside:
            self._reading = self._beside.submit(read_vocabulary)
            self._load(choice)

    def __repr__(self) -> str:
        signature = self.signature
        name, tokens = signature.name, f"{signature.vocabulary_size:,} tokens"
        return f"{type(self).__name__}({name!r}, {signature.precision}, {tokens})"

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, text: str, *, top_k: int | None = 5, candidates: Sequence[str] = (), joint: int = 5
    ) -> Filling: ...
    @overload
    def __call__(
        self,
        text: Iterable[str],
        *,
        top_k: int | None = 5,
        candidates: Sequence[str] = (),
        joint: int = 5,
    ) -> list[Filling]: ...
    def __call__(
        self,
        text: str | Iterable[str],
        *,
        top_k: int | None = 5,
        candidates: Sequence[str] = (),
        joint: int = 5,
    ) -> Filling | list[Filling]:
        """What `fill` gives for this model."""
        return fill(self, text, top_k=top_k, candidates=candidates, joint=joint)

    @abstractmethod
    def _load(self, choice: ModelChoice) -> None:
        """Open the files, run the probe, set `memory_bytes` and sign."""

    @abstractmethod
    def _run(self, batch: PaddedBatch, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """`logits_at` of one group of texts: float32 [M, V], NaN and all, or a ModelError."""

    @abstractmethod
    def _run_states(self, batch: PaddedBatch, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """`states_at` of one group of texts: float32 [M, H], or a ModelError."""

    @property
    def runs_alone(self) -> bool:
        """Whether each text is a call of its own, so that batches gain nothing."""
        return self._sharing == ALONE

    @property
    def shares_padding(self) -> bool:
        """Whether texts of different lengths share a call."""
        return self._sharing == ANY_LENGTH

    def logits_at(
        self, input_ids: np.ndarray, attention_mask: np.ndarray, rows: np.ndarray, cols: np.ndarray
    ) -> np.ndarray:
        if not len(rows):
            return np.empty((0, self._width), dtype=np.float32)
        return self._at(self._run, PaddedBatch(input_ids, attention_mask), rows, cols)

    def states_at(
        self, input_ids: np.ndarray, attention_mask: np.ndarray, rows: np.ndarray, cols: np.ndarray
    ) -> np.ndarray:
        return self._at(self._run_states, PaddedBatch(input_ids, attention_mask), rows, cols)

    def _at(self, run: _Run, batch: PaddedBatch, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """The result of `run` at the asked positions, float32 [M, ...], in one or more calls."""
        rows, cols = np.asarray(rows, dtype=np.int64), np.asarray(cols, dtype=np.int64)
        # Not `np.unique`, whose first call imports modules for as long as a sentence takes.
        texts = np.flatnonzero(np.bincount(rows))
        results, positions = [], []  # of each call, indices into M
        lengths = used_lengths(batch.attention_mask, rows, cols)
        for group in self._calls(texts, lengths):
            asked = np.flatnonzero(np.bincount(group, minlength=len(batch.input_ids))[rows])
            longest = lengths[group].max()
            part = PaddedBatch(
                batch.input_ids[group, :longest], batch.attention_mask[group, :longest]
            )
            results.append(run(part, np.searchsorted(group, rows[asked]), cols[asked]))
            positions.append(asked)
        values = results[0].astype(np.float32, copy=False)  # [M, ...]
        if len(results) > 1:
            order = np.argsort(np.concatenate(positions))
            values = np.concatenate(results, dtype=np.float32)[order]
        broken = np.isnan(values.max(axis=1))  # [M]; NaN wins every max
        if broken.any():
            raise ModelOutputError(
                f"{self._name} returned NaN at {int(broken.sum())} of {len(values)} positions: its "
                "weights are damaged, overflow float16 or were quantized badly; fetch them again, "
                "or take the full-precision model"
            )
        return values

    def _calls(self, texts: np.ndarray, lengths: np.ndarray) -> Iterator[np.ndarray]:
        """Indices of texts [B'], whose lengths are [B], in groups that are one call each."""
        groups = [texts]
        if self._sharing != ANY_LENGTH:
            groups = [texts[lengths[texts] == length] for length in sorted({*lengths[texts]})]
        for group in groups:
            tokens = self._length or int(lengths[group].max(initial=1))
            text_bytes = max(1, tokens * self._width * self._logit_bytes)
            size = self._batch or max(1, _RUN_BYTES // sharing() // text_bytes)
            size = 1 if self.runs_alone else size
            yield from (group[start : start + size] for start in range(0, len(group), size))

    def _probe_batch(self) -> PaddedBatch:
        """Two texts of different lengths, the longer one first."""
        mask = self.vocabulary.mask_token
        encodings = map(self.vocabulary.encode, (f"{mask} a {mask} the {mask}", mask))
        return pad([np.array(encoding.ids) for encoding in encodings], self.vocabulary.pad_id)

    def _probe(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Arguments of `logits_at`: all positions of the probe but one."""
        probe = self._probe_batch()
        rows, cols = np.nonzero(probe.attention_mask[:, : self._length])
        return probe.input_ids, probe.attention_mask, rows[1:], cols[1:]

    def _differs(self, expected: np.ndarray, tolerance: float) -> bool:
        """Whether logits of the probe are not `expected`, those of the whole model."""
        with np.errstate(invalid="ignore"):  # infinite minus infinite
            difference = np.abs(self.logits_at(*self._probe()) - expected).max()
        return not difference <= tolerance * max(1.0, float(np.abs(expected).max()))

    def _find_sharing(self, tolerance: float) -> None:
        """Find the texts that share a call without a change to each other's logits.

        A ModelOutputError if a text has other logits each time.
        """
        mask, limit = self.vocabulary.mask_token, self._length or self._config.usable_positions
        first, *words, last = self.vocabulary.encode(f"{mask} a {mask} the {mask}").ids
        words *= 1 + self._chunk // len(words)  # so that the shorter text, too, has more than one
        texts = [first, *words * 3, last], [first, *reversed(words), last], [first, *words, last]
        probe = pad([np.array(text[:limit]) for text in texts], self.vocabulary.pad_id)
        cols = np.arange(probe.attention_mask[-1].sum())
        alone = PaddedBatch(probe.input_ids[-1:, cols], probe.attention_mask[-1:, cols])
        logits = self.logits_at(alone.input_ids, alone.attention_mask, np.zeros_like(cols), cols)
        # Stricter in float32 than promised: trained weights may show more than the probe does.
        most = tolerance / 4 if tolerance < 1e-3 else tolerance
        # A text without asked positions would be left out.
        asked = np.array([0, 1, *np.full_like(cols, 2)]), np.array([0, 0, *cols])
        kinds = list(SHARING)
        for kind in kinds[kinds.index(self._sharing) :]:
            self._sharing = kind
            beside = self.logits_at(probe.input_ids, probe.attention_mask, *asked)[2:]
            if relative_difference(beside, logits) <= most:
                return
        raise ModelOutputError(
            f"{self._name} gives other logits each time: it draws random numbers, as in training; "
            "export it after model.eval(), or choose another model"
        )

    def _width_note(self) -> str:
        """A note if the model is wider than its tokenizer; a ModelError if it is narrower."""
        size = self.vocabulary.size
        if self._width < size:
            raise ModelError(
                f"the tokenizer and the model of {self._name} do not belong together: the "
                f"tokenizer knows {size:,} tokens, the model has logits for {self._width:,}; "
                "name the right tokenizer, or fetch both from the same repository"
            )
        if self._width == size:
            return ""
        return f"the model has {self._width:,} logits, the tokenizer knows {size:,} tokens"

    def _hash(self, paths: Sequence[Path]) -> None:
        """Begin to hash the weights, for `_sign`."""
        self._hashing = self._beside.submit(weights_sha256, paths)

    def _tokenizer_sha256(self, tokenizer: TokenizerVocabulary) -> str:
        if self.files.tokenizer is None:  # in memory
            return hashlib.sha256(json.dumps(sorted(tokenizer.ids.items())).encode()).hexdigest()
        paths = (path for path in self.files.tokenizer.iterdir() if TOKENIZER.fullmatch(path.name))
        return weights_sha256(paths)

    def _sign(self, packages: Sequence[str], notes: Sequence[str], **parts: Any) -> None:
        """Set `max_tokens` and the signature, after `_hash`; empty notes are left out."""
        tokenizer = self._reading.result()
        limits = (tokenizer.limit, self._config.usable_positions, self._length)
        limits_set = [limit for limit in limits if limit]
        self.max_tokens = min(limits_set, default=_DEFAULT_TOKENS)
        limit_note = f"longest text unknown, taken to be {_DEFAULT_TOKENS} tokens"
        all_notes = [
            f"commit {self.files.commit}" if self.files.commit else "",
            *notes,
            "" if limits_set else limit_note,
            tokenizer.note,
        ]
        versions = {name: _version(name) for name in (*packages, *tokenizer.packages)}
        self.signature = ModelSignature(
            name=self._name,
            architecture=self._config.model_type,
            runtime=self.files.runtime,
            sha256=self._hashing.result(),
            config_sha256=self._config.sha256,
            tokenizer_sha256=self._tokenizer_sha256(tokenizer),
            vocabulary_size=self._width,
            max_tokens=self.max_tokens,
            versions={"fillmask-ui": __version__, **versions},
            cpu_features=cpu_features(),
            notes=tuple(filter(None, all_notes)),
            **parts,
        )


def relative_difference(logits: np.ndarray, reference: np.ndarray) -> float:
    """The largest difference of a logit, relative to the largest finite one of the reference.

    >>> relative_difference(np.array([4.0, -np.inf]), np.array([5.0, -np.inf]))
    0.2
    """
    changed = logits != reference  # equal infinities have no difference
    difference = np.abs(logits[changed] - reference[changed]).max(initial=0)
    largest = np.abs(reference[np.isfinite(reference)]).max(initial=0)
    return float(difference / largest) if difference else 0.0


def used_lengths(attention_mask: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
    """Columns of each text [B], from the left, that hold a real token or an asked position.

    >>> used_lengths(np.array([[1, 1, 0, 0], [1, 0, 0, 0]]), np.array([1]), np.array([2]))
    array([2, 3])
    """
    lengths = attention_mask.shape[1] - np.argmax(attention_mask[:, ::-1], axis=1)
    np.maximum.at(lengths, rows, cols + 1)
    return lengths


@cache
def cpu_features() -> tuple[str, ...]:
    """From /proc/cpuinfo on Linux; elsewhere the architecture's name."""
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text(encoding="utf-8", errors="replace") if cpuinfo.is_file() else ""
    line = re.search(r"^(?:flags|Features)\s*:(.*)", text, re.MULTILINE)
    flags = line[1].split() if line else ()
    return tuple(name for name in _FEATURES if name in flags) or (platform.machine() or "unknown",)


@cache
def _version(package: str) -> str:
    from importlib import metadata  # slow to import

    # onnxruntime-gpu and the like bring the same module, perhaps beside onnxruntime.
    if package == "onnxruntime":
        return str(importlib.import_module(package).__version__)
    return metadata.version(package)
