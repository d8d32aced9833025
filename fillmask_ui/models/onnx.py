"""Masked language models on ONNX Runtime; the only file that imports onnxruntime.

Exported files differ: int32 or int64, with or without token_type_ids and position_ids, one fixed
batch size or length. Axes: B texts, T tokens, V vocabulary.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnxruntime as ort
from onnxruntime.capi import onnxruntime_pybind11_state as ort_state

from fillmask_ui.batching import PaddedBatch
from fillmask_ui.errors import ModelError, ModelOutputError, OptionError, first_line, unknown
from fillmask_ui.models.choice import ModelChoice
from fillmask_ui.models.graph import GraphSource, read_graph
from fillmask_ui.models.runtime import RuntimeModel, used_lengths
from fillmask_ui.models.weights import total_bytes

_OPTIMIZATION = {
    "none": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
}

# ONNX Runtime's exceptions share no base class of their own.
_ERRORS: tuple[type[Exception], ...] = (
    *(e for e in vars(ort_state).values() if isinstance(e, type) and issubclass(e, Exception)),
    RuntimeError,
    ValueError,
)

# What the inputs are -> what exporters call them.
_ROLES = {
    "input_ids": ("input_ids", "input", "ids", "tokens"),
    "attention_mask": ("attention_mask", "input_mask", "mask"),
    "token_type_ids": ("token_type_ids", "segment_ids"),
    "position_ids": ("position_ids",),
}

_DTYPES: dict[str, Any] = {
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
}

# A model may be wider than its tokenizer, rounded up for speed (DeBERTa-v3: 128,001 tokens in
# 128,100 columns). More than that without a config.json that says so is another kind of output.
_ROUNDED_UP = 128


@dataclass(frozen=True)
class Feeds:
    """How to feed one graph."""

    roles: Mapping[str, str]  # name of each input in the graph -> what it is, as in the table above
    dtypes: Mapping[str, Any]  # name of each input -> numpy type that it wants
    batch: int | None  # its fixed B, None if any
    length: int | None  # its fixed T, None if any
    pad_id: int  # fills up texts
    first_position: int  # position id of a text's first token

    def arrays(self, input_ids: np.ndarray, attention_mask: np.ndarray) -> dict[str, np.ndarray]:
        """Token ids as the graph wants them.

        Both are int64 [B, T], with B and T at most those that are fixed; the arrays, by input
        name, are [batch or B, length or T].
        """
        rows, columns = input_ids.shape
        shape = (self.batch or rows, self.length or columns)
        ids = np.full(shape, self.pad_id, dtype=np.int64)
        mask = np.zeros(shape, dtype=np.int64)
        ids[:rows, :columns], mask[:rows, :columns] = input_ids, attention_mask
        # A row with nothing to attend to gives NaN: filler rows repeat the first text.
        ids[rows:], mask[rows:] = ids[0], mask[0]
        counted = np.cumsum(mask, axis=1)
        if self.first_position:
            # As create_position_ids_from_input_ids of RoBERTa: padding stays at the pad id.
            positions = counted * mask + self.first_position - 1
        else:
            positions = np.maximum(counted - 1, 0)
        values = dict(zip(_ROLES, (ids, mask, np.zeros_like(ids), positions), strict=True))
        return {name: values[role].astype(self.dtypes[name]) for name, role in self.roles.items()}


class OnnxMaskedLM(RuntimeModel):
    """`MaskedLM` over an ONNX graph."""

    def _load(self, choice: ModelChoice) -> None:
        if choice.dtype:
            raise OptionError(
                f"a dtype ({choice.dtype}) and the like belong to the runtime torch, not to onnx, "
                "whose precision is that of the file"
            )
        if choice.provider and choice.device:
            raise OptionError("for ONNX Runtime a device is a provider: give one of the two")
        # `--device cpu` means the same for both runtimes
        wanted = choice.provider or choice.device or "cpu"
        available = ort.get_available_providers()
        short = {name.removesuffix("ExecutionProvider").lower(): name for name in available}
        provider = short.get(wanted.lower(), wanted)
        if provider not in available:
            raise OptionError(unknown("provider", provider, available))
        source = read_graph(self._files.weights[0], self._files.folder, self._name)
        self._session = _open(source, provider, choice)
        declared = self._plan_feeds()
        self._feeds = self._probe(declared)
        self._batch, self._length = self._feeds.batch, self._feeds.length
        sees_mask = "attention_mask" in self._feeds.roles.values()
        self._hides_padding = sees_mask or self._length is not None
        blind = not sees_mask and self._length
        optimization = choice.graph_optimization
        self.memory_bytes = max(total_bytes(source.files), 4 * (source.parameters or 0))
        self._sign(
            device=provider,
            precision=source.precision,
            parameters=source.parameters,
            paths=source.files,
            packages=("onnxruntime",),
            notes=(
                "the graph takes one text at a time" if self._feeds is not declared else "",
                self._width_note(),
                "the graph takes no attention mask, so it also attends to padding" if blind else "",
                f"graph optimization: {optimization}" if optimization != "all" else "",
            ),
        )

    def _run(self, batch: PaddedBatch, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        length = int(used_lengths(batch.attention_mask, rows, cols).max())
        if self._length and length > self._length:
            raise ModelError(
                f"a text has {length:,} tokens and {self._name} was exported for "
                f"{self._length:,}: shorten it, or export the model with a dynamic length"
            )
        texts = batch.input_ids[:, :length], batch.attention_mask[:, :length]
        return self._call(self._feeds.arrays(*texts), [self._output])[self._output][rows, cols]

    def _call(self, feeds: dict[str, np.ndarray], names: list[str]) -> dict[str, np.ndarray]:
        """Those of the named outputs that are arrays; the logits are [B, T, V]."""
        try:
            values = zip(names, self._session.run(names, feeds), strict=True)
        except _ERRORS as error:
            size = "{} x {}".format(*next(iter(feeds.values())).shape)
            raise ModelError(f"{self._name} failed on {size} tokens: {_reason(error)}") from error
        return {name: value for name, value in values if isinstance(value, np.ndarray)}

    def _plan_feeds(self) -> Feeds:
        """Recognise the inputs of the graph."""
        inputs = self._session.get_inputs()
        listed = ", ".join(one.name for one in inputs) or "none"
        roles: dict[str, str] = {}
        for one in inputs:
            called = one.name.split(":")[0].lower()
            role = next((role for role, names in _ROLES.items() if called in names), None)
            if role is None and len(inputs) == 1:
                role = "input_ids"
            if role is None or one.type not in _DTYPES or len(one.shape) not in (0, 2):
                raise ModelError(
                    f"{self._name} is no masked language model that takes tokens alone: its input "
                    f"{one.name} ({one.type}, shape {list(one.shape)}) is not known; wanted are "
                    "input_ids and, if need be, attention_mask, token_type_ids, position_ids of "
                    f"shape [batch, tokens]; it has: {listed}"
                )
            roles[one.name] = role
        ids = [one for one in inputs if roles[one.name] == "input_ids"]
        if len(ids) != 1:
            raise ModelError(f"{self._name} has no single input for token ids; it has: {listed}")
        shape = [*ids[0].shape, None, None]
        batch, length = (size if isinstance(size, int) and size > 0 else None for size in shape[:2])
        dtypes = {one.name: _DTYPES[one.type] for one in inputs}
        first = self._config.first_position
        return Feeds(roles, dtypes, batch, length, self.vocabulary.pad_id, first)

    def _probe(self, declared: Feeds) -> Feeds:
        """How the graph can be fed: as it declares or, as some exports need, one text at a time."""
        try:
            self._recognise(declared)
            return declared
        except ModelOutputError:
            raise
        except ModelError as failure:
            single = replace(declared, batch=1)
            try:
                self._recognise(single)
            except ModelError:
                raise failure from failure.__cause__
            return single

    def _recognise(self, feeds: Feeds) -> None:
        """Find the output [B, T, V] that holds the logits, and how wide they are."""
        probe = self._probe_batch()
        rows, tokens = slice(0, feeds.batch), feeds.length or probe.input_ids.shape[1]
        arrays = feeds.arrays(probe.input_ids[rows, :tokens], probe.attention_mask[rows, :tokens])
        outputs = self._call(arrays, [one.name for one in self._session.get_outputs()])
        shape = (feeds.batch or len(probe.input_ids), tokens)
        self._output = self._find_logits(outputs, shape)
        logits = outputs[self._output]
        self._width, self._logit_bytes = logits.shape[2], logits.dtype.itemsize
        self._width_note()
        # What lies behind the first text's real tokens may be anything.
        if np.isnan(logits[0, : probe.input_ids.shape[1]]).any():
            raise ModelOutputError(
                f"{self._name} returns NaN on a plain probe text: its weights are damaged or "
                "overflow their precision; use the full-precision file or fetch it again"
            )

    def _find_logits(self, outputs: Mapping[str, np.ndarray], shape: tuple[int, int]) -> str:
        """Name of the output of a probe [B, T] that is [B, T, V]."""
        known, configured = self.vocabulary.size, self._config.vocabulary_size
        widths = {
            key: value.shape[2]
            for key, value in outputs.items()
            if value.ndim == 3 and value.shape[:2] == shape and value.dtype.kind == "f"
        }
        for wanted in (configured, known):
            fitting = [key for key, width in widths.items() if width == wanted]
            if fitting:
                return "logits" if "logits" in fitting else fitting[0]
        if configured is None:
            for key, width in widths.items():
                if "logits" in key and 0 <= width - known < _ROUNDED_UP:
                    return key
        listed = ", ".join(f"{key} {list(value.shape)}" for key, value in outputs.items())
        raise ModelError(
            f"{self._name} is no masked language model that goes with this tokenizer: no output "
            f"has a column for each of the {known:,} tokens. On a probe of {shape[0]} x {shape[1]} "
            f"tokens its outputs were: {listed}. Export the model with its masked-LM head (task "
            "fill-mask), or name the tokenizer that belongs to it"
        )


def _open(source: GraphSource, provider: str, choice: ModelChoice) -> ort.InferenceSession:
    if choice.graph_optimization not in _OPTIMIZATION:
        raise OptionError(unknown("graph optimization", choice.graph_optimization, _OPTIMIZATION))
    settings = ort.SessionOptions()
    settings.log_severity_level = 4  # errors arrive as exceptions; the log would repeat them
    settings.graph_optimization_level = _OPTIMIZATION[choice.graph_optimization]
    if choice.threads is not None:
        settings.intra_op_num_threads = choice.threads
    # Several users share the machine: idle threads must not burn its cores while they wait.
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # Without VNNI, int8 products of two bytes saturate in 16 bits and results differ by CPU;
    # this takes the exact way there and changes nothing elsewhere.
    settings.add_session_config_entry("session.x64quantprecision", "1")
    graph: Any = source.content or str(source.files[0])
    if source.content is not None:
        settings.add_session_config_entry(
            "session.model_external_initializers_file_folder_path", str(source.weights_folder)
        )
    try:
        session = ort.InferenceSession(graph, settings, providers=[provider])
    except _ERRORS as error:
        raise ModelError(
            f"ONNX Runtime {ort.__version__} cannot open {source.files[0]}: {_reason(error)}"
        ) from error
    if session.get_providers()[0] != provider:
        raise OptionError(
            f"{provider} is in this onnxruntime but does not start on this machine (its driver "
            f"or libraries are missing); usable here: {', '.join(session.get_providers())}"
        )
    return session


def _reason(error: Exception) -> str:
    """First line of ONNX Runtime's message, without its code."""
    return first_line(error, 10_000).split(" : ")[-1].strip()[:300]
