"""Masked language models on ONNX Runtime; the only file that imports onnxruntime."""

from dataclasses import replace
from typing import Any

import numpy as np
import onnxruntime as ort
from onnxruntime.capi import onnxruntime_pybind11_state as ort_state

from fillmask_ui.batching import PaddedBatch
from fillmask_ui.errors import ModelError, ModelOutputError, OptionError, first_line, unknown
from fillmask_ui.models.choice import ModelChoice
from fillmask_ui.models.graph import GraphSource, read_graph
from fillmask_ui.models.graph_io import Feeds, find_logits, plan_feeds
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


class OnnxMaskedLM(RuntimeModel):
    """`MaskedLM` over an ONNX graph."""

    def _load(self, choice: ModelChoice) -> None:
        if choice.dtype:
            raise OptionError(
                f"a dtype ({choice.dtype}) and the like belong to the runtime torch; the precision "
                "of onnx is that of the file"
            )
        if choice.provider and choice.device:
            raise OptionError("for ONNX Runtime a device is a provider: give one of the two")
        # `--device cpu` means the same for both runtimes.
        provider = _provider(choice.provider or choice.device or "cpu")
        source = read_graph(self._files.weights[0], self._files.folder, self._name)
        self._session = _open(source, provider, choice)
        declared = plan_feeds(
            self._session.get_inputs(),
            self._tokenizer.pad_id,
            self._config.first_position,
            self._name,
        )
        self._feeds = self._probe(declared)
        self._batch, self._length = self._feeds.batch, self._feeds.length
        self._hides_padding = self._feeds.sees_mask or self._length is not None
        blind = not self._feeds.sees_mask and self._length
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

    def _probe(self, declared: Feeds) -> Feeds:
        """How the graph can be fed: as it declares, else one text at a time.

        Some exports declare a free batch size and work for one text alone.
        """
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
        self._output = find_logits(
            outputs, shape, self.vocabulary.size, self._config.vocabulary_size, self._name
        )
        logits = outputs[self._output]
        self._width, self._logit_bytes = logits.shape[2], logits.dtype.itemsize
        self._width_note()
        # What lies behind the first text's real tokens may be anything.
        if np.isnan(logits[0, : probe.input_ids.shape[1]]).any():
            raise ModelOutputError(
                f"{self._name} returns NaN on a plain probe text: its weights are damaged or "
                "overflow their precision; use the full-precision file or fetch it again"
            )


def _provider(wanted: str) -> str:
    """Full name of an execution provider that is there."""
    available = ort.get_available_providers()
    short = {name.removesuffix("ExecutionProvider").lower(): name for name in available}
    name = short.get(wanted.lower(), wanted)
    if name not in available:
        raise OptionError(unknown("provider", name, available))
    return name


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
