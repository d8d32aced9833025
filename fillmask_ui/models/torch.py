"""Masked language models on PyTorch; the only file that imports torch.

Axes: B texts, T tokens, M asked positions, V vocabulary, H hidden size.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fillmask_ui.errors import ModelError, OptionError, unknown
from fillmask_ui.models.configuration import ModelConfig
from fillmask_ui.models.outputs import check_width, refuse_nan, size_note
from fillmask_ui.models.probe import probe_texts
from fillmask_ui.models.quiet import quiet_transformers
from fillmask_ui.models.reference import ModelFiles
from fillmask_ui.models.signature import cpu_features, total_bytes, versions, weights_sha256
from fillmask_ui.models.vocabulary import TokenizerVocabulary
from fillmask_ui.models.weights import refuse_missing, stored_precision
from fillmask_ui.records import ModelSignature

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}

# How far logits at the asked positions may be from those of the full model on the probe, relative
# to the largest. Half precision rounds differently with another number of rows.
_TOLERANCE = {"float64": 1e-4, "float32": 1e-4, "bfloat16": 5e-2, "float16": 5e-3}

# Logits of a whole batch are cut into runs of at most this size.
_RUN_BYTES = 256 << 20

_DEFAULT_TOKENS = 512

# transformers swaps functions of torch while it builds a model: one thread at a time.
_BUILDING = threading.Lock()


@dataclass(frozen=True)
class TorchOptions:
    """How to run a model.

    Attributes:
        dtype: what to compute in; None for float32.
        device: None for the CPU.
        threads: of the whole process; None leaves them as they are.
    """

    dtype: str | None = None
    device: str | None = None
    threads: int | None = None


class TorchMaskedLM:
    """`MaskedLM` over a transformers model.

    Attributes:
        memory_bytes: what the loaded weights take.
    """

    def __init__(
        self,
        files: ModelFiles,
        vocabulary: TokenizerVocabulary,
        config: ModelConfig,
        options: TorchOptions,
    ) -> None:
        dtype = options.dtype or "float32"
        if dtype not in _DTYPES:
            raise OptionError(unknown("dtype", dtype, _DTYPES))
        self._device = torch_device(options.device)
        if options.threads is not None:
            torch.set_num_threads(options.threads)
        stored = stored_precision(files.safetensors)
        self._name = files.name
        self.vocabulary = vocabulary
        model = _read(files, _DTYPES[dtype], self._device)
        self._model = model.eval()
        self._width = int(model.config.get_text_config().vocab_size)
        check_width(self._width, vocabulary.size, files.name)
        # What this thread asks for at the moment: several may be inside the model at a time.
        self._asked = threading.local()
        self._gathers = False
        notes = self._check(_TOLERANCE[dtype])
        if size := size_note(self._width, vocabulary.size):
            notes.append(size)
        limits = [limit for limit in (vocabulary.limit, config.usable_positions) if limit]
        if not limits:
            notes.append(f"longest text unknown, taken to be {_DEFAULT_TOKENS} tokens")
        self.max_tokens = min(limits, default=_DEFAULT_TOKENS)
        self.memory_bytes = sum(p.numel() * p.element_size() for p in model.parameters())
        self.signature = ModelSignature(
            name=files.name,
            architecture=config.model_type,
            runtime="torch",
            device=str(self._device),
            # float32 holds every stored type exactly; anything else changes the numbers.
            precision=stored if dtype == "float32" else f"{stored} computed in {dtype}",
            sha256=weights_sha256(files.safetensors),
            parameters=sum(p.numel() for p in model.parameters()),
            size_bytes=total_bytes(files.safetensors),
            vocabulary_size=self._width,
            max_tokens=self.max_tokens,
            versions=versions("torch", "transformers", *vocabulary.packages),
            cpu_features=cpu_features(),
            notes=(*([f"commit {files.commit}"] if files.commit else []), *notes),
        )

    def logits_at(
        self,
        input_ids: np.ndarray,
        attention_mask: np.ndarray,
        rows: np.ndarray,
        cols: np.ndarray,
    ) -> np.ndarray:
        logits = self._logits_at(input_ids, attention_mask, np.asarray(rows), np.asarray(cols))
        refuse_nan(logits, self._name)
        return logits

    def _logits_at(
        self, input_ids: np.ndarray, attention_mask: np.ndarray, rows: np.ndarray, cols: np.ndarray
    ) -> np.ndarray:
        """Float32 [M, V], NaN and all."""
        texts = np.unique(rows)
        size = len(texts) or 1
        if not self._gathers:
            size = max(1, _RUN_BYTES // (4 * input_ids.shape[1] * self._width))
        logits = np.empty((len(rows), self._width), dtype=np.float32)  # [M, V]
        for start in range(0, len(texts), size):
            part = texts[start : start + size]
            asked = np.flatnonzero(np.isin(rows, part))
            logits[asked] = self._run(
                input_ids[part],
                attention_mask[part],
                np.searchsorted(part, rows[asked]),
                cols[asked],
            )
        return logits

    def _run(
        self, input_ids: np.ndarray, attention_mask: np.ndarray, rows: np.ndarray, cols: np.ndarray
    ) -> np.ndarray:
        """Float32 [M, V] of one call of the model."""
        row_index, col_index = self._tensor(rows), self._tensor(cols)
        if self._gathers:
            self._asked.positions = (row_index, col_index)
        try:
            with torch.inference_mode():
                output: torch.Tensor = self._model(
                    input_ids=self._tensor(input_ids), attention_mask=self._tensor(attention_mask)
                ).logits
        except (RuntimeError, IndexError) as error:
            raise ModelError(
                f"{self._name} failed on {input_ids.shape[0]} x {input_ids.shape[1]} tokens: "
                f"{str(error).strip().splitlines()[0][:300]}"
            ) from error
        finally:
            self._asked.positions = None
        # [1, M, V] from the hook, else [B, T, V]
        kept = output[0] if self._gathers else output[row_index, col_index]
        return kept.float().cpu().numpy()

    def _tensor(self, values: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(values, dtype=np.int64)).to(self._device)

    def _keep_asked(self, _module: torch.nn.Module, args: tuple[Any, ...]) -> Any:
        """Pre-hook of the vocabulary projection: hidden states [B, T, H] -> [1, M, H]."""
        positions = getattr(self._asked, "positions", None)
        if positions is None or not args or args[0].dim() != 3:
            return None
        rows, cols = positions
        return (args[0][rows, cols].unsqueeze(0), *args[1:])

    def _check(self, tolerance: float) -> list[str]:
        """Run the probe in full and with the hook; without it where the two differ."""
        probe = probe_texts(self.vocabulary)
        asked = (probe.input_ids, probe.attention_mask, probe.rows[1:], probe.cols[1:])
        full = self._logits_at(*asked)
        refuse_nan(full, self._name)
        projection = self._model.get_output_embeddings()
        if projection is not None:
            hook = projection.register_forward_pre_hook(self._keep_asked)
            self._gathers = True
            if self._same(full, asked, tolerance):
                return []
            hook.remove()
            self._gathers = False
        return ["logits are computed at all positions: this architecture's head cannot be cut"]

    def _same(self, full: np.ndarray, asked: tuple[np.ndarray, ...], tolerance: float) -> bool:
        try:
            cut = self._logits_at(*asked)
        except (ModelError, ValueError):  # a head that needs all positions at once
            return False
        return bool(np.abs(cut - full).max() <= tolerance * max(1.0, float(np.abs(full).max())))


def torch_device(wanted: str | None) -> torch.device:
    """A torch device that is there; the CPU where none is wanted.

    Raises:
        OptionError: that lists those there are.
    """
    known = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    if torch.backends.mps.is_available():
        known.append("mps")
    try:
        device = torch.device(wanted or "cpu")
        torch.empty(1, device=device)
    # What torch raises depends on why: a name it does not know, a build without the backend, a
    # machine without the hardware.
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise OptionError(unknown("device", str(wanted), known)) from error
    if device.type == "meta":
        raise OptionError(unknown("device", str(wanted), known))
    return device


def _read(files: ModelFiles, dtype: torch.dtype, device: torch.device) -> PreTrainedModel:
    """Weights into the class that config.json names, all of them, on the device.

    Raises:
        ModelError: if the class has no masked-LM head, the files lack weights of it, or the
            device has no room for them.
    """
    with _BUILDING, quiet_transformers():
        from transformers import AutoModelForMaskedLM

        try:
            model, info = AutoModelForMaskedLM.from_pretrained(
                files.folder,
                dtype=dtype,
                use_safetensors=True,
                local_files_only=True,
                trust_remote_code=False,
                output_loading_info=True,
            )
            model = model.to(device)
        # A config can ask for what is not installed or does not fit in many ways, and each
        # library has its own errors; whatever it is, this model cannot be loaded.
        except Exception as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise ModelError(
                f"{files.name} cannot be loaded as a masked language model: {lines[0][:300]}"
            ) from error
    refuse_missing(files.name, type(model).__name__, sorted(info["missing_keys"]))
    return model
