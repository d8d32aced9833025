"""Masked language models on ONNX Runtime.

Exported files differ: int32 or int64, with or without token_type_ids and position_ids, one fixed
batch size or length. Axes: B texts, T tokens, M asked positions, V vocabulary.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
import onnxruntime as ort

from fillmask_ui.batching import PaddedBatch
from fillmask_ui.errors import (
    ModelError,
    ModelOutputError,
    OptionError,
    first_line,
    opening,
)
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.models.model_files import is_rounded_up
from fillmask_ui.models.onnx_devices import Device, find_device
from fillmask_ui.models.onnx_files import GraphSource, PortableGraph, read_cut, store_cut
from fillmask_ui.models.runtime_model import (
    ALONE,
    ANY_LENGTH,
    FULL_LOGITS,
    ONE_LENGTH,
    SHARING,
    TEXT_BY_TEXT,
    RuntimeModel,
    cpu_features,
)

# Features of x86 processors that add up products of bytes in 32 bits.
_EXACT_BYTES = {"avx512_vnni", "avx_vnni"}
# Between calls that give back memory, each of which costs the next call some milliseconds.
_SHRINK_SECONDS = 20.0

ASKED = "asked_positions"  # the input of cut graphs, see `onnx_tools.asked_positions`

# Role of an input -> what exporters call it.
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
# 128,100 columns). A wider output that config.json does not confirm has no logits.
_ROUNDED_UP = 128
_LAYERS_END = "its layers end, so there is no guess behind each of them"
_ENCODER_END = "its encoder ends and its head begins, so there are no vectors of words to look at"
_NO_MASK = "the graph takes no attention mask, so it also attends to padding"


class OnnxMaskedLM(RuntimeModel):
    """`MaskedLM` over an ONNX graph."""

    def _load(self, choice: ModelChoice) -> None:
        if choice.dtype:
            raise OptionError("a dtype belongs to the runtime torch; onnx takes that of the file")
        device = find_device(choice.device or "cpu", choice.provider_options)
        self._open = partial(open_session, device=device, choice=choice)
        # All that the comparison of the cut graph with the whole one depends on.
        width = str(self._config.vocabulary_size)
        options = choice.graph_optimization, choice.x64_quant_precision
        where = str(device), *device.settings().values()
        key = (ort.__version__, *where, *options, width, *cpu_features())
        source = read_cut(self.files.weights[0], self.files.folder, self._name, key)
        if source is None:
            source = self._read(key)
        else:
            self._hash(source.files.all_paths)
            self._use(source, self._open(source))
        self.vocabulary = self._reading.result()
        ignores_mask = self._length and not self._sees_mask
        file_bytes = sum(path.stat().st_size for path in source.files.all_paths)
        self.memory_bytes = max(file_bytes, 4 * (source.parameters or 0))
        self._sign(
            device=device.signed(self._session),
            precision=source.precision,
            parameters=source.parameters,
            size_bytes=source.size_bytes,
            packages=device.packages,
            notes=(
                TEXT_BY_TEXT if source.scales_by_call else SHARING[self._sharing],
                FULL_LOGITS if source.logit_bytes else "",
                self._width_note(),
                _NO_MASK if ignores_mask else "",
            ),
            settings={**device.settings(), **runtime_settings(choice)},
        )

    def _read(self, key: tuple[str, ...]) -> GraphSource:
        """Open the graph and, where a cut one gives the same logits, that one instead."""
        from fillmask_ui.models import onnx_graph

        self._hash(self._file.files.all_paths)
        session = self._open(self._file)
        self.vocabulary = self._reading.result()
        whole = self._with_logits(session, self._file)
        self._use(whole, session)
        if onnx_graph.reads_types_as_words(whole, self._inputs):
            raise ModelError(
                f"the ONNX graph of {self._name} reads token types as words, as XLM does, so that "
                "none of them is neutral: export it without the input token_type_ids"
            )
        expected = self.logits_at(*self._probe())
        cut = onnx_graph.cut_at_asked(whole)
        tolerance = onnx_graph.tolerance(whole)
        if cut is not None:
            del self._session, session  # two of a large model might not fit
            with suppress(ModelError, ValueError):  # a graph that cutting did not foresee
                self._use(cut, self._open(cut))
                if not self._differs(expected, tolerance):
                    self._find_sharing(tolerance)
                    store_cut(replace(cut, sharing=self._sharing), key)
                    return cut
            self._use(whole, self._open(whole))
        self._find_sharing(tolerance)
        return whole

    def _use(self, source: GraphSource, session: ort.InferenceSession) -> None:
        self._session, self._source = session, source
        self._output = source.logits if source.logit_bytes else session.get_outputs()[0].name
        self._width, self._logit_bytes = source.width, source.logit_bytes
        self._recognise(session)
        self._batch = self._rows
        self._sees_mask = any(role == "attention_mask" for role, _ in self._inputs.values())
        hides_padding = self._sees_mask or self._length is not None
        if source.sharing:
            self._sharing = source.sharing
        elif source.scales_by_call:  # a text by itself has its own scale of activations
            self._sharing = ALONE
        else:
            self._sharing = ANY_LENGTH if hides_padding else ONE_LENGTH

    def _recognise(self, session: ort.InferenceSession) -> None:
        """Look at the inputs of a graph; a ModelError for inputs other than tokens."""
        inputs = [entry for entry in session.get_inputs() if entry.name != ASKED]
        self._inputs: dict[str, tuple[str, Any]] = {}  # name -> role and type of its numbers
        ids_shapes = []
        for entry in inputs:
            name = "input_ids" if len(inputs) == 1 else entry.name.split(":")[0].lower()
            role = next((role for role, names in _ROLES.items() if name in names), "")
            if role and entry.type in _DTYPES and len(entry.shape) in (0, 2):
                self._inputs[entry.name] = role, _DTYPES[entry.type]
                if role == "input_ids":
                    ids_shapes.append(entry.shape)
        if len(self._inputs) < len(inputs) or len(ids_shapes) != 1:
            listed = ", ".join(f"{entry.name} {entry.type} {list(entry.shape)}" for entry in inputs)
            raise ModelError(
                f"{self._name} is no masked language model that takes tokens alone: its inputs are "
                f"{listed or 'none'}; export it with {', '.join(_ROLES)} of shape [batch, tokens]"
            )
        self._rows, self._length = _fixed_sizes(ids_shapes[0]) or (None, None)

    def arrays(
        self,
        input_ids: np.ndarray,
        attention_mask: np.ndarray,
        token_types: np.ndarray | int = 0,
    ) -> dict[str, np.ndarray]:
        """The whole graph's inputs for a batch, int64 [B, T] each, by name."""
        rows, columns = input_ids.shape
        shape = (self._rows or rows, self._length or columns)
        ids = np.full(shape, self.vocabulary.pad_id, dtype=np.int64)
        mask, types = np.zeros((2, *shape), dtype=np.int64)
        ids[:rows, :columns], mask[:rows, :columns] = input_ids, attention_mask
        types[:rows, :columns] = token_types
        # A row with nothing to attend to gives NaN: filler rows repeat the first text.
        ids[rows:], mask[rows:] = ids[0], mask[0]
        positions = np.maximum(np.cumsum(mask, axis=1) - 1, 0)
        if first := self._config.first_position:
            # As create_position_ids_from_input_ids of RoBERTa: padding stays at the pad id.
            positions = np.cumsum(mask, axis=1) * mask + first - 1
        values = dict(zip(_ROLES, (ids, mask, types, positions), strict=True))
        return {name: values[role].astype(kind) for name, (role, kind) in self._inputs.items()}

    def _with_logits(self, session: ort.InferenceSession, source: GraphSource) -> GraphSource:
        """With the output [B, T, V] that holds the logits, and their width."""
        self._recognise(session)
        probe = self._probe_batch()
        part = slice(0, self._rows), slice(0, self._length)
        feeds = self.arrays(probe.input_ids[part], probe.attention_mask[part])
        outputs = self._call(session, feeds)
        name = self._find_logits(outputs, next(iter(feeds.values())).shape)
        logits = outputs[name]
        self._width = logits.shape[2]
        self._width_note()
        # Behind the first text's real tokens there may be anything.
        plain = logits[0, : probe.input_ids.shape[1]]
        if plain.min() >= 0 and np.allclose(plain.sum(axis=1, dtype=np.float64), 1, atol=1e-2):
            raise ModelOutputError(
                f"{self._name} returns probabilities in place of logits: export it without the "
                "softmax at its end"
            )
        size = logits.dtype.itemsize
        return replace(source, logits=name, width=self._width, logit_bytes=size)

    def _find_logits(self, outputs: Mapping[str, np.ndarray], shape: tuple[int, ...]) -> str:
        """Name of the output of a probe [B, T] that is [B, T, V]."""
        size, configured = self.vocabulary.size, self._config.vocabulary_size
        exact, wider = [], []
        for name, values in outputs.items():
            if values.ndim == 3 and values.shape[:2] == shape and values.dtype.kind == "f":
                width = values.shape[2]
                rounded = is_rounded_up(width, configured or size)
                if configured is None and "logits" in name:
                    rounded = 0 <= width - size < _ROUNDED_UP
                if width in (configured, size):
                    exact.append(name)
                elif rounded:
                    wider.append(name)
        if fitting := exact or wider:
            return "logits" if "logits" in fitting else fitting[0]
        listed = ", ".join(
            f"{name} {list(values.shape)} {values.dtype}" for name, values in outputs.items()
        )
        raise ModelError(
            f"{self._name} is no masked language model that goes with this tokenizer: no output of "
            f"floats is {list(shape)} x {size:,} tokens, but: {listed}. Export the model with its "
            "masked-LM head (task fill-mask), or name the tokenizer that belongs to it"
        )

    @cached_property
    def _file(self) -> GraphSource:
        from fillmask_ui.models.onnx_graph import read_graph

        return read_graph(self.files.weights[0], self.files.folder, self._name)

    def _run(self, batch: PaddedBatch, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        feeds = self._feed(batch, rows, cols, cut=not self._logit_bytes)
        (logits,) = self._call(self._session, feeds, [self._output]).values()
        return logits[rows, cols] if self._logit_bytes else logits.reshape(len(rows), self._width)

    def _run_states(self, batch: PaddedBatch, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        feeds = self._feed(batch, rows, cols, cut=False)
        (states,) = self._call(self._states, feeds).values()  # [B, T, H] or [B * T, H]
        width = next(iter(feeds.values())).shape[1]
        return states.reshape(-1, states.shape[-1])[rows * width + cols].astype(np.float32)

    # Each part has its own copy of the weights, as few lessons need them.
    def _open_part(self, part: GraphSource | None, missing: str) -> ort.InferenceSession:
        """A part of the whole graph; a ModelError with what is `missing` if there is none."""
        if part is None:
            raise self._missing(missing)
        return self._open(part)

    def _missing(self, what: str) -> ModelError:
        return ModelError(
            f"the ONNX graph of {self._name} does not show where {what}: choose the embedded "
            "model, or one that runs on PyTorch"
        )

    @cached_property
    def _states(self) -> ort.InferenceSession:
        from fillmask_ui.models.onnx_graph import encoder

        return self._open_part(encoder(self._file, self._source.logits), _ENCODER_END)

    @cached_property
    def _layers(self) -> ort.InferenceSession:
        """The encoder, with the states of each layer as its outputs."""
        from fillmask_ui.models.onnx_graph import encoder_layers

        (ids,) = (name for name, (role, _) in self._inputs.items() if role == "input_ids")
        part = encoder_layers(self._file, self._source.logits, ids)
        session = self._open_part(part, _LAYERS_END)
        depth = len(session.get_outputs()) - 1
        if depth != (self._config.layers or depth):
            raise self._missing(_LAYERS_END)
        return session

    @cached_property
    def _head(self) -> ort.InferenceSession:
        """From the states of the last layer to logits at asked positions."""
        from fillmask_ui.models.onnx_graph import head

        *_, last = self._layers.get_outputs()
        part = head(self._file, self._source.logits, last.name, np.dtype(_DTYPES[last.type]))
        return self._open_part(part, _LAYERS_END)

    def layer_states(self, input_ids: np.ndarray) -> tuple[np.ndarray, ...]:
        batch = np.asarray(input_ids)[None]
        states = self._call(self._layers, self.arrays(batch, np.ones_like(batch))).values()
        if len({state.shape for state in states}) > 1:  # tokens are pooled
            raise self._missing(_LAYERS_END)
        return tuple(states)

    def layer_logits(self, states: np.ndarray, cols: np.ndarray) -> np.ndarray:
        *_, last = self._layers.get_outputs()
        feeds = {last.name: states.astype(_DTYPES[last.type]), ASKED: np.asarray(cols)}
        (logits,) = self._call(self._head, feeds).values()
        return logits.reshape(len(cols), self._width).astype(np.float32, copy=False)

    @cached_property
    def output_names(self) -> tuple[str, ...]:
        """The outputs of the whole graph; that of the logits is `logits_name`."""
        from fillmask_ui.models.onnx_graph import parsed

        return tuple(output.name for output in parsed(self._file).graph.output)

    @property
    def logits_name(self) -> str:
        return self._source.logits

    @cached_property
    def _inner(self) -> dict[Any, ort.InferenceSession]:
        return {}

    def inner_values(
        self, find: Callable[..., Sequence[str]], *batch: np.ndarray
    ) -> list[np.ndarray]:
        """Values that `find(graph, logits)` names, in its order, for arguments of `arrays`."""
        from fillmask_ui.models.onnx_graph import inner_part

        if find not in self._inner:
            self._inner[find] = self._open(inner_part(self._file, self._source.logits, find))
        return [*self._call(self._inner[find], self.arrays(*batch)).values()]

    @cached_property
    def _whole(self) -> ort.InferenceSession:
        return self._open(self._file)

    def whole_outputs(self, *batch: np.ndarray) -> dict[str, np.ndarray]:
        """All outputs of the whole graph, by name, for arguments of `arrays`.

        Its weights are loaded a second time when this is first called.
        """
        return self._call(self._whole, self.arrays(*batch))

    def portable(self) -> PortableGraph:
        """The graph that runs here; a ModelError if it takes texts of one shape alone."""
        from fillmask_ui.models.onnx_graph import self_contained

        if self._rows or self._length:
            raise ModelError(
                f"the ONNX graph of {self._name} takes {self._rows or 'any number of'} texts of "
                f"{self._length or 'any number of'} tokens alone: export it with dynamic axes"
            )
        inputs = {name: (role, np.dtype(kind).name) for name, (role, kind) in self._inputs.items()}
        graph, output, cut = self_contained(self._source), self._output, not self._logit_bytes
        first = self._config.first_position
        return PortableGraph(graph.SerializeToString(), inputs, output, cut, first)

    def opened(self, graph: bytes) -> Callable[[np.ndarray, np.ndarray], dict[str, np.ndarray]]:
        """A changed copy of the whole graph, its weights inside: from `arrays` to all outputs."""
        session = self._open(replace(self._source, content=graph))
        return lambda ids, mask: self._call(session, self.arrays(ids, mask))

    def _feed(
        self, batch: PaddedBatch, rows: np.ndarray, cols: np.ndarray, *, cut: bool
    ) -> dict[str, Any]:
        """Inputs of the graph, by name; `cut`: of one that takes the asked positions."""
        feeds = self.arrays(batch.input_ids, batch.attention_mask)
        if cut:
            feeds[ASKED] = rows * (self._length or batch.input_ids.shape[1]) + cols
        return feeds

    def _call(
        self, session: ort.InferenceSession, feeds: dict[str, np.ndarray], names: Sequence[str] = ()
    ) -> dict[str, np.ndarray]:
        """Those of the named outputs, or of all, that are arrays."""
        names = names or [output.name for output in session.get_outputs()]
        try:
            outputs = zip(names, session.run(names, feeds, _run_options()), strict=True)
        except Exception as error:  # the library's own share no base class
            shape = " x ".join(map(str, next(iter(feeds.values())).shape))
            raise ModelError(
                f"{self._name} failed on {shape} tokens: {first_line(error)}"
            ) from error
        return {name: values for name, values in outputs if isinstance(values, np.ndarray)}


def _fixed_sizes(shape: Sequence[int | str | None]) -> tuple[int | None, ...]:
    """The sizes of the axes of an input, None for one of any size."""
    return tuple(size if isinstance(size, int) and size > 0 else None for size in shape)


def runtime_settings(choice: ModelChoice) -> dict[str, str]:
    """The options of ONNX Runtime that change digits, for a signature; defaults are left out.

    >>> runtime_settings(ModelChoice("embedded:int8", graph_optimization="basic"))
    {'graph-optimization': 'basic'}
    """
    names = ("graph_optimization", "x64_quant_precision")
    return {
        key.replace("_", "-"): value
        for key, value in choice.changed_options().items()
        if key in names
    }


def open_session(
    source: GraphSource, device: Device, choice: ModelChoice | None
) -> ort.InferenceSession:
    """A session; without a `choice` one as ONNX Runtime opens it by default.

    A `ModelError` for a graph, an `OptionError` for a device that does not compute it.
    """
    settings = ort.SessionOptions()
    settings.log_severity_level = 4  # errors arrive as exceptions; the log would repeat them
    weights_folder = "session.model_external_initializers_file_folder_path"
    settings.add_session_config_entry(weights_folder, str(source.files.folder))
    if choice is not None:
        _set(settings, choice)
    with opening("a model", source.files.path, ModelError):
        return device.open(source.files.path, source.content, settings)


def _set(settings: ort.SessionOptions, choice: ModelChoice) -> None:
    level = f"ORT_ENABLE_{choice.graph_optimization.upper()}"
    if choice.graph_optimization == "none":
        level = "ORT_DISABLE_ALL"
    settings.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    # A plan for each shape that ever came would never be given back; calls are as fast without.
    settings.enable_mem_pattern = False
    if choice.threads is not None:
        settings.intra_op_num_threads = choice.threads
    _make_arena()
    entries = {
        # All sessions compute in one arena; by default each has one, which keeps what its largest
        # call ever took. Weights lie outside, to be freed with their model.
        "session.use_env_allocators": "1",
        "session.use_device_allocator_for_initializers": "1",
        # From one operator to the next threads stay awake, which makes a sentence a quarter
        # faster. Longer than that they must not burn cores that others wait for.
        "session.intra_op.spin_duration_us": "10",
        "session.force_spinning_stop": "1",
    }
    # Without these instructions products of bytes saturate in 16 bits, and results differ by CPU.
    saturates = not _EXACT_BYTES.intersection(cpu_features())
    if choice.x64_quant_precision == "on" or (choice.x64_quant_precision == "auto" and saturates):
        entries["session.x64quantprecision"] = "1"
    for name, value in entries.items():
        settings.add_session_config_entry(name, value)


@cache
def _make_arena() -> None:
    memory = ort.OrtMemoryInfo(
        "Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT
    )
    # It grows by what is needed, and not to twice its size.
    with suppress(RuntimeError):  # the host program has made its own
        ort.create_and_register_allocator(memory, ort.OrtArenaCfg({"arena_extend_strategy": 1}))


class _Arena:
    last_shrunk = time.monotonic()


def _run_options() -> ort.RunOptions | None:
    """Of a call; from time to time one gives back memory that no call uses any more."""
    if time.monotonic() - _Arena.last_shrunk < _SHRINK_SECONDS:
        return None
    _Arena.last_shrunk = time.monotonic()
    options = ort.RunOptions()
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    return options
