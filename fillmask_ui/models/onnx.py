"""Masked language models on ONNX Runtime; the only file that imports onnxruntime.

Axes: B texts, T tokens, M asked positions, V vocabulary.
"""

import re
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime as ort

from fillmask_ui.batching import PaddedBatch
from fillmask_ui.errors import (
    ModelError,
    ModelOutputError,
    OptionError,
    first_line,
    opening,
    unknown,
)
from fillmask_ui.models.choice import ModelChoice
from fillmask_ui.models.feeds import ASKED, Feeds, find_logits, plan_feeds
from fillmask_ui.models.graph_files import GraphSource, keep_cut, read_cut
from fillmask_ui.models.onnx_arena import run_options, use_arena
from fillmask_ui.models.runtime import FULL_LOGITS, RuntimeModel, cpu_features, used_lengths
from fillmask_ui.models.tuning import cores
from fillmask_ui.models.weights import total_bytes
from fillmask_ui.protocol import PairLogits
from fillmask_ui.workers import sharing

if TYPE_CHECKING:
    from fillmask_ui.models.graph import ParsedGraph

_OPTIMIZATION = {
    "none": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
}

_PACKAGES = ("onnxruntime",)

# Models up to this size may be in memory a second time while many texts are measured.
_TWICE_BYTES = 512 << 20

# Features of x86 processors that add up products of bytes in 32 bits.
_EXACT_BYTES = {"avx512_vnni", "avx_vnni"}

# What exporters call the logits of next sentence prediction.
_ORDER = re.compile(r"seq_relationship|next_sentence|nsp_logits", re.IGNORECASE)


class OnnxMaskedLM(RuntimeModel):
    """`MaskedLM` over an ONNX graph."""

    def _load(self, choice: ModelChoice) -> None:
        if choice.dtype:
            raise OptionError("a dtype belongs to the runtime torch; onnx takes that of the file")
        if choice.provider and choice.device:
            raise OptionError("for ONNX Runtime a device is a provider: give one of the two")
        # `--device cpu` means the same for both runtimes
        wanted = choice.provider or choice.device or "cpu"
        available = ort.get_available_providers()
        short = {name.removesuffix("ExecutionProvider").lower(): name for name in available}
        provider = short.get(wanted.lower(), wanted)
        if provider not in available:
            raise OptionError(unknown("provider", provider, available))
        self._open = partial(_open, provider=provider, choice=choice)
        self._others: dict[str, ort.InferenceSession] = {}
        self._opening = threading.Lock()
        optimization, exact = choice.graph_optimization, choice.x64_quant_precision
        # What a cut graph was compared with the whole one under, and its logits were found by.
        width = str(self._config.vocabulary_size)
        key = (ort.__version__, provider, optimization, exact, width, *cpu_features())
        source = read_cut(self.files.weights[0], self.files.folder, self._name, key)
        if source is None:
            source = self._read(key)
        else:
            self._identify_beside(source.files, _PACKAGES)
            session = self._open(source)
            self._await_vocabulary()
            self._use(source, session)
        self.runs_alone = source.scales_by_call
        blind = not self._feeds.sees_mask and self._length
        self.memory_bytes = max(total_bytes(source.files), 4 * (source.parameters or 0))
        self._sign(
            device=provider,
            precision=source.precision,
            parameters=source.parameters,
            size_bytes=source.size_bytes,
            packages=_PACKAGES,
            notes=(
                "the graph takes one text at a time" if source.single else "",
                "activations are quantized text by text" if self.runs_alone else "",
                FULL_LOGITS if source.logit_bytes else "",
                self._width_note(),
                "the graph takes no attention mask, so it also attends to padding" if blind else "",
                f"graph optimization: {optimization}" if optimization != "all" else "",
                f"x64 quant precision: {exact}" if exact != "auto" else "",
            ),
        )

    def _read(self, key: tuple[str, ...]) -> GraphSource:
        """Open the graph and, where a cut one gives the same logits, that one instead."""
        graph = self._graph()
        self._identify_beside(graph.source.files, _PACKAGES)
        session = self._open(graph.source)
        self._await_vocabulary()
        whole = self._recognise(session, graph.source)
        self._use(whole, session)
        wanted = self._probe_logits()
        limit = graph.tolerance * max(1.0, float(np.abs(wanted).max()))
        if not np.allclose(self._probe_logits(), wanted, rtol=0, atol=limit):
            raise ModelOutputError(
                f"{self._name} gives other logits each time, as a graph that was exported in "
                "training mode does: export it after model.eval()"
            )
        for deep in (True, False):
            cut = graph.cut(whole, deep=deep)
            if cut is None:
                break
            del self._session, session  # two of a large model might not fit
            with suppress(ModelError, ValueError):  # whatever cutting did not foresee
                self._use(cut, self._open(cut))
                with np.errstate(invalid="ignore"):  # infinite ones
                    alike = np.abs(self._probe_logits() - wanted).max() <= limit
                if alike:
                    keep_cut(cut, graph.homes, key)
                    return cut
            session = self._open(whole)
            self._use(whole, session)
        return whole

    def _use(self, source: GraphSource, session: ort.InferenceSession) -> None:
        """Run a graph from now on."""
        self._session, self._source, self._output = session, source, source.logits
        self._width, self._logit_bytes = source.width, source.logit_bytes
        self._feeds = self._plan(session, single=source.single)
        self._length = self._feeds.length
        # By itself, a text's activations have a scale of their own.
        self._batch = 1 if source.scales_by_call else self._feeds.batch
        self._hides_padding = self._feeds.sees_mask or self._length is not None

    def _plan(self, session: ort.InferenceSession, *, single: bool) -> Feeds:
        return plan_feeds(
            session.get_inputs(),
            self._name,
            pad_id=self.vocabulary.pad_id,
            first_position=self._config.first_position,
            single=single,
        )

    def _probe_logits(self) -> np.ndarray:
        """Logits at most positions of the probe, float32 [M, V], in batches as any text's."""
        probe = self._probe_batch()
        rows, cols = np.nonzero(probe.attention_mask[:, : self._length])
        return self.logits_at(probe.input_ids, probe.attention_mask, rows[1:], cols[1:])

    def _other(self, kind: str, make: Callable[[], ort.InferenceSession]) -> ort.InferenceSession:
        """A session with its own copy of the weights, made when it is first asked for."""
        with self._opening:
            if kind not in self._others:
                self._others[kind] = make()
            return self._others[kind]

    def _session_here(self) -> ort.InferenceSession:
        """Where each thread that calls has a core of its own, a session without threads of its own.

        That is about 5 % faster, as nobody waits for anybody.
        """
        alone = (self.threads or cores()) <= sharing()
        if sharing() == 1 or not alone or self.memory_bytes > _TWICE_BYTES:
            return self._session
        return self._other("single", lambda: self._open(self._source, threads=1))

    def _run(self, batch: PaddedBatch, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        feeds = self._feed(batch, rows, cols)
        logits = self._call(self._session_here(), feeds, [self._output])[self._output]
        if not self._logit_bytes:
            return logits.reshape(len(rows), self._width)
        if logits.shape[1] <= cols.max():
            raise ModelOutputError(
                f"{self._name} gives logits {list(logits.shape)} for {batch.input_ids.shape[1]:,} "
                "tokens, none for some of them: export it with a dynamic length"
            )
        return logits[rows, cols]

    def _graph(self) -> "ParsedGraph":
        from fillmask_ui.models.graph import read_graph

        return read_graph(self.files.weights[0], self.files.folder, self._name)

    def _run_states(self, batch: PaddedBatch, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        session = self._other("states", self._open_states)
        name = session.get_outputs()[0].name
        return self._call(session, self._feed(batch, rows, cols, cut=True), [name])[name]

    def _open_states(self) -> ort.InferenceSession:
        ending = self._graph().states(self._source)
        if ending is None:
            raise ModelError(
                f"the ONNX graph of {self._name} does not show where its encoder ends and its head "
                "begins, so there are no vectors of words to look at: choose the embedded model, "
                "or one that runs on PyTorch"
            )
        return self._open(ending)

    @cached_property
    def _pair_names(self) -> list[str]:
        """Names of the outputs of both heads in the whole graph; of the first alone if only one."""
        graph = self._graph()
        names = (output.name for output in graph.model.graph.output)
        return [graph.logits_name(self._source), *list(filter(_ORDER.search, names))[:1]]

    @property
    def predicts_next(self) -> bool:
        return len(self._pair_names) == 2

    def pair_logits(
        self, input_ids: np.ndarray, segments: np.ndarray, cols: np.ndarray
    ) -> PairLogits:
        if not self.predicts_next:
            raise ModelError(f"{self._name} has no head for next sentence prediction")
        session = self._other("pairs", lambda: self._open(self._graph().source))
        feeds = self._feeds.arrays(np.asarray(input_ids)[None], np.ones_like(input_ids)[None])
        for name, role in self._feeds.roles.items():
            if role == "token_type_ids":
                feeds[name][:, : len(segments)] = segments
        tokens, order = self._call(session, feeds, self._pair_names).values()
        kept = tokens[0, cols], order.reshape(-1, 2)[0]
        return PairLogits(*(own.astype(np.float32, copy=False) for own in kept))

    def graph_inputs(
        self, input_ids: np.ndarray, attention_mask: np.ndarray
    ) -> dict[str, np.ndarray]:
        """What the whole graph reads for a batch, both int64 [B, T], by the names of its inputs."""
        return self._feeds.arrays(input_ids, attention_mask)

    def opened(self, graph: bytes) -> Callable[[np.ndarray, np.ndarray], dict[str, np.ndarray]]:
        """A changed copy of the whole graph, its weights inside, run by this model's options.

        That is a function of token ids and attention mask, both int64 [B, T], to all its outputs.
        """
        plain = replace(self._source, content=graph, weights_folder=self.files.folder)
        session = self._open(plain)
        names = [output.name for output in session.get_outputs()]
        return lambda ids, mask: self._call(session, self.graph_inputs(ids, mask), names)

    def prepared_call(
        self, input_ids: np.ndarray, attention_mask: np.ndarray, rows: np.ndarray, cols: np.ndarray
    ) -> Callable[[], object]:
        """The bare `session.run` behind a `logits_at`."""
        feeds = self._feed(PaddedBatch(input_ids, attention_mask), rows, cols)
        return partial(self._session.run, [self._output], feeds)

    def _feed(
        self, batch: PaddedBatch, rows: np.ndarray, cols: np.ndarray, *, cut: bool = False
    ) -> dict[str, Any]:
        """Inputs of the graph, by name; `cut`: of one that was, whatever gives the logits."""
        length = int(used_lengths(batch.attention_mask, rows, cols).max())
        if self._length and length > self._length:
            raise ModelError(
                f"a text has {length:,} tokens and {self._name} was exported for "
                f"{self._length:,}: shorten it, or export the model with a dynamic length"
            )
        texts = batch.input_ids[:, :length], batch.attention_mask[:, :length]
        feeds = self._feeds.arrays(*texts)
        if cut or not self._logit_bytes:
            feeds[ASKED] = rows * (self._length or length) + cols
        return feeds

    def _call(
        self, session: ort.InferenceSession, feeds: dict[str, np.ndarray], names: list[str]
    ) -> dict[str, np.ndarray]:
        """Those of the named outputs that are arrays."""
        try:
            values = zip(names, session.run(names, feeds, run_options()), strict=True)
        except Exception as error:  # the library's own share no base class
            shape = " x ".join(map(str, next(iter(feeds.values())).shape))
            raise ModelError(
                f"{self._name} failed on {shape} tokens: {first_line(error)}"
            ) from error
        return {name: value for name, value in values if isinstance(value, np.ndarray)}

    def _recognise(self, session: ort.InferenceSession, source: GraphSource) -> GraphSource:
        """With the output that holds the logits; some exports take one text alone, unsaid."""
        try:
            return self._with_logits(session, source)
        except ModelOutputError:
            raise
        except ModelError as failure:
            try:
                return self._with_logits(session, replace(source, single=True))
            except ModelError:
                raise failure from failure.__cause__

    def _with_logits(self, session: ort.InferenceSession, source: GraphSource) -> GraphSource:
        """With the output [B, T, V] that holds the logits, and how wide they are."""
        feeds = self._plan(session, single=source.single)
        probe = self._probe_batch()
        rows, tokens = slice(0, feeds.batch), feeds.length or probe.input_ids.shape[1]
        arrays = feeds.arrays(probe.input_ids[rows, :tokens], probe.attention_mask[rows, :tokens])
        outputs = self._call(session, arrays, [one.name for one in session.get_outputs()])
        name = find_logits(
            outputs,
            (feeds.batch or len(probe.input_ids), tokens),
            self._name,
            known=self.vocabulary.size,
            configured=self._config.vocabulary_size,
        )
        logits = outputs[name]
        self._width = logits.shape[2]
        self._width_note()
        # What lies behind the first text's real tokens may be anything.
        plain = logits[0, : probe.input_ids.shape[1]]
        if plain.min() >= 0 and np.allclose(plain.sum(axis=1, dtype=np.float64), 1, atol=1e-2):
            raise ModelOutputError(
                f"{self._name} returns probabilities, and logits are wanted: export it without the "
                "softmax at its end"
            )
        size = logits.dtype.itemsize
        return replace(source, logits=name, width=self._width, logit_bytes=size)


def _open(
    source: GraphSource, provider: str, choice: ModelChoice, threads: int | None = None
) -> ort.InferenceSession:
    settings = ort.SessionOptions()
    settings.log_severity_level = 4  # errors arrive as exceptions; the log would repeat them
    settings.graph_optimization_level = _OPTIMIZATION[choice.graph_optimization]
    # A plan for each shape that ever came would never be given back; calls are as fast without.
    settings.enable_mem_pattern = False
    use_arena(settings)
    if (count := threads or choice.threads) is not None:
        settings.intra_op_num_threads = count
    # From one operator to the next threads stay awake, which makes a sentence a quarter faster.
    # Longer than that they must not burn cores that others wait for.
    settings.add_session_config_entry("session.intra_op.spin_duration_us", "10")
    settings.add_session_config_entry("session.force_spinning_stop", "1")
    # Elsewhere products of bytes saturate in 16 bits, and results differ by CPU.
    exact = {"on": True, "auto": not _EXACT_BYTES.intersection(cpu_features())}
    if exact.get(choice.x64_quant_precision):
        settings.add_session_config_entry("session.x64quantprecision", "1")
    graph: Any = source.content or str(source.files[0])
    if source.content is not None:
        settings.add_session_config_entry(
            "session.model_external_initializers_file_folder_path", str(source.weights_folder)
        )
    with opening("a model", source.files[0]):
        session = ort.InferenceSession(graph, settings, providers=[provider], enable_fallback=0)
    if session.get_providers()[0] != provider:
        raise OptionError(
            f"{provider} is in this onnxruntime but does not start on this machine (its driver "
            f"or libraries are missing); usable here: {', '.join(session.get_providers())}"
        )
    return session
