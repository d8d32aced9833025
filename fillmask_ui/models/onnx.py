"""Masked language models on ONNX Runtime; the only file that imports onnxruntime.

Axes: B texts, T tokens, M hidden positions, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnxruntime as ort
from onnxruntime.capi import onnxruntime_pybind11_state as ort_errors

from fillmask_ui.errors import ModelError, ModelOutputError, OptionError, unknown
from fillmask_ui.models.configuration import ModelConfig
from fillmask_ui.models.feeds import Feeds, plan_feeds
from fillmask_ui.models.graph import GraphSource, read_graph
from fillmask_ui.models.outputs import LogitsOutput, find_logits, refuse_nan
from fillmask_ui.models.probe import Probe, probe_texts
from fillmask_ui.models.reference import ModelFiles
from fillmask_ui.models.signature import cpu_features, total_bytes, versions, weights_sha256
from fillmask_ui.models.vocabulary import TokenizerVocabulary
from fillmask_ui.records import ModelSignature

# Logits of a whole batch are cut into runs of at most this size.
_RUN_BYTES = 256 << 20

# Longest text where neither tokenizer, config nor graph says one: that of BERT.
_DEFAULT_TOKENS = 512

_OPTIMIZATION = {
    "none": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
}

# ONNX Runtime's exceptions share no base class of their own.
_ERRORS: tuple[type[Exception], ...] = (
    ort_errors.EPFail,
    ort_errors.Fail,
    ort_errors.InvalidArgument,
    ort_errors.InvalidGraph,
    ort_errors.InvalidProtobuf,
    ort_errors.NoModel,
    ort_errors.NoSuchFile,
    ort_errors.NotImplemented,
    ort_errors.RuntimeException,
    RuntimeError,
    ValueError,
)


@dataclass(frozen=True)
class OnnxOptions:
    """How to run a graph.

    Attributes:
        provider: execution provider, in full or its short name (`cpu`); None for the CPU.
        threads: for one call; None for one a physical core.
        graph_optimization: none | basic | extended | all; numbers may depend on it.
    """

    provider: str | None = None
    threads: int | None = None
    graph_optimization: str = "all"


class OnnxMaskedLM:
    """`MaskedLM` over an ONNX graph.

    Attributes:
        memory_bytes: estimate of what the loaded weights take.
    """

    def __init__(
        self,
        files: ModelFiles,
        vocabulary: TokenizerVocabulary,
        config: ModelConfig,
        options: OnnxOptions,
    ) -> None:
        if files.onnx is None:
            raise ValueError("no ONNX file among the files given")
        provider = _provider(options.provider)
        source = read_graph(files.onnx, files.folder, files.name)
        self.vocabulary = vocabulary
        self._name = files.name
        self._session = _open(source, provider, options)
        self._feeds = plan_feeds(
            self._session.get_inputs(), vocabulary.pad_id, config.first_position, files.name
        )
        notes = self._probe(probe_texts(vocabulary), config)
        if not self._feeds.sees_mask and self._feeds.length:
            notes.append("the graph takes no attention mask, so it also attends to padding")
        if options.graph_optimization != "all":
            notes.append(f"graph optimization: {options.graph_optimization}")
        limits = (vocabulary.limit, config.usable_positions, self._feeds.length)
        known = [limit for limit in limits if limit]
        if not known:
            notes.append(f"longest text unknown, taken to be {_DEFAULT_TOKENS} tokens")
        self.max_tokens = min(known, default=_DEFAULT_TOKENS)
        size = total_bytes(source.files)
        self.memory_bytes = max(size, 4 * (source.parameters or 0))
        self.signature = ModelSignature(
            name=files.name,
            architecture=config.model_type,
            runtime="onnx",
            device=provider,
            precision=source.precision,
            sha256=weights_sha256(source.files),
            parameters=source.parameters,
            size_bytes=size,
            vocabulary_size=self._logits.width,
            max_tokens=self.max_tokens,
            versions=versions("onnxruntime", *vocabulary.packages),
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
        rows, cols = np.asarray(rows), np.asarray(cols)
        logits = np.empty((len(rows), self._logits.width), dtype=np.float32)  # [M, V]
        # The last column in use, by a real token or by a question.
        lengths = np.asarray(attention_mask).shape[1] - np.argmax(attention_mask[:, ::-1], axis=1)
        np.maximum.at(lengths, rows, cols + 1)
        for texts in self._runs(np.unique(rows), lengths):
            length = int(lengths[texts].max())
            self._check_length(length)
            output = self._run(input_ids[texts, :length], attention_mask[texts, :length])
            asked = np.flatnonzero(np.isin(rows, texts))
            logits[asked] = output[np.searchsorted(texts, rows[asked]), cols[asked]]
        refuse_nan(logits, self._name)
        return logits

    def _runs(self, texts: np.ndarray, lengths: np.ndarray) -> list[np.ndarray]:
        """Texts [B'] in groups, each of which is one call of the graph."""
        if self._feeds.sees_mask or self._feeds.length:
            groups = [texts]
        else:  # padding would be read as text: only equal lengths go together
            groups = [texts[lengths[texts] == length] for length in np.unique(lengths[texts])]
        runs = []
        for group in groups:
            length = self._feeds.length or int(lengths[group].max(initial=1))
            row_bytes = length * self._logits.width * self._logits.bytes_per_logit
            size = self._feeds.batch or max(1, _RUN_BYTES // row_bytes)
            runs += [group[start : start + size] for start in range(0, len(group), size)]
        return runs

    def _check_length(self, length: int) -> None:
        if self._feeds.length and length > self._feeds.length:
            raise ModelError(
                f"a text has {length:,} tokens and {self._name} was exported for "
                f"{self._feeds.length:,}: shorten it, or export the model with a dynamic length"
            )

    def _run(self, input_ids: np.ndarray, attention_mask: np.ndarray) -> np.ndarray:
        """Logits [B, T, V] of one call."""
        arrays = self._feeds.arrays(input_ids, attention_mask)
        try:
            return self._session.run([self._logits.name], arrays)[0]
        except _ERRORS as error:
            raise ModelError(
                f"{self._name} failed on {input_ids.shape[0]} x {input_ids.shape[1]} tokens: "
                f"{_reason(error)}"
            ) from error

    def _probe(self, probe: Probe, config: ModelConfig) -> list[str]:
        """Run two short texts and recognise the logits.

        Returns:
            Notes for the signature.
        """
        attempts = [self._feeds]
        if self._feeds.batch is None:
            # Some exports declare a free batch size and work for one text alone.
            attempts.append(replace(self._feeds, batch=1))
        failures: list[Exception] = []
        texts, tokens = probe.input_ids.shape
        for feeds in attempts:
            try:
                self._logits: LogitsOutput = find_logits(
                    self._all_outputs(probe, feeds),
                    (feeds.batch or texts, feeds.length or tokens),
                    min(tokens, feeds.length or tokens),
                    self.vocabulary.size,
                    config.vocabulary_size,
                    self._name,
                )
            except ModelOutputError:
                raise
            except (ModelError, *_ERRORS) as error:
                failures.append(error)
                continue
            single = feeds.batch == 1 and self._feeds.batch is None
            self._feeds = feeds
            notes = ["the graph takes one text at a time" if single else "", self._logits.note]
            return [note for note in notes if note]
        first = failures[0]
        if isinstance(first, ModelError):
            raise first
        raise ModelError(
            f"{self._name} cannot be run, even on a short text: {_reason(first)}"
        ) from first

    def _all_outputs(self, probe: Probe, feeds: Feeds) -> dict[str, np.ndarray]:
        rows = slice(0, feeds.batch)
        length = feeds.length or probe.input_ids.shape[1]
        names = [one.name for one in self._session.get_outputs()]
        arrays = feeds.arrays(probe.input_ids[rows, :length], probe.attention_mask[rows, :length])
        values = self._session.run(names, arrays)
        return {
            name: value
            for name, value in zip(names, values, strict=True)
            if isinstance(value, np.ndarray)
        }


def available_providers() -> list[str]:
    """Execution providers that this onnxruntime has."""
    return list(ort.get_available_providers())


def _provider(wanted: str | None) -> str:
    """Full name of a provider.

    Raises:
        OptionError: that lists those there are.
    """
    available = available_providers()
    short = {name.removesuffix("ExecutionProvider").lower(): name for name in available}
    if wanted is None:
        return "CPUExecutionProvider"
    if wanted in available:
        return wanted
    if wanted.lower() in short:
        return short[wanted.lower()]
    raise OptionError(unknown("provider", wanted, available))


def _open(source: GraphSource, provider: str, options: OnnxOptions) -> ort.InferenceSession:
    if options.graph_optimization not in _OPTIMIZATION:
        raise OptionError(unknown("graph optimization", options.graph_optimization, _OPTIMIZATION))
    settings = ort.SessionOptions()
    settings.log_severity_level = 4  # errors arrive as exceptions; the log would repeat them
    settings.graph_optimization_level = _OPTIMIZATION[options.graph_optimization]
    if options.threads is not None:
        settings.intra_op_num_threads = options.threads
    # Several users share the machine: idle threads must not burn its cores while they wait.
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # Without VNNI, int8 products of two bytes saturate in 16 bits and results differ by CPU;
    # this takes the exact way there and changes nothing elsewhere.
    settings.add_session_config_entry("session.x64quantprecision", "1")
    graph: Any = str(source.path)
    if source.content is not None:
        graph = source.content
        settings.add_session_config_entry(
            "session.model_external_initializers_file_folder_path", str(source.weights_folder)
        )
    try:
        session = ort.InferenceSession(graph, settings, providers=[provider])
    except _ERRORS as error:
        raise ModelError(
            f"ONNX Runtime {ort.__version__} cannot open {source.path}: {_reason(error)}"
        ) from error
    if session.get_providers()[0] != provider:
        raise OptionError(
            f"{provider} is in this onnxruntime but does not start on this machine (its driver "
            f"or libraries are missing); usable here: {', '.join(session.get_providers())}"
        )
    return session


def _reason(error: Exception) -> str:
    """First line of ONNX Runtime's message, without its code."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].split(" : ")[-1].strip()[:300]
