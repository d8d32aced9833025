"""Masked language models on PyTorch.

Axes: B texts, T tokens, M asked positions, V vocabulary, H hidden size.
"""

import copy
import threading
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fillmask_ui.batching import PaddedBatch, pad, sharing
from fillmask_ui.errors import ModelError, OptionError, first_line, opening, unknown
from fillmask_ui.models.loading_progress import quiet_transformers
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.models.model_files import ModelFiles, is_rounded_up, transformers_config
from fillmask_ui.models.runtime_model import (
    FULL_LOGITS,
    SHARING,
    TEXT_BY_TEXT,
    TOLERANCE,
    RuntimeModel,
    used_lengths,
)
from fillmask_ui.models.weights import (
    refuse_missing,
    refuse_unlike,
    stored_precision,
    tensor_names,
)
from fillmask_ui.protocol import MaskedLM

if TYPE_CHECKING:
    from onnx import ModelProto

PARITY = 1e-3  # largest allowed difference of a logit between ONNX and PyTorch
# By default: the cores, or OMP_NUM_THREADS.
_THREADS = torch.get_num_threads()
# transformers swaps functions of torch while it builds a model: one thread at a time.
_BUILDING = threading.Lock()
# What torch.compile and parallel training put before the names of weights -> nothing.
_WRAPPED = {r"^(?:_orig_mod\.|module\.)+": ""}
# A config may choose neither the outputs of a call nor code that transformers would fetch, nor that
# a token sees only those before it.
_FIXED_SETTINGS = {
    "_attn_implementation": None,  # torch's fused attention where the architecture has it
    "_experts_implementation": None,
    "is_decoder": False,
    "return_dict": True,
    "output_attentions": False,
    "output_hidden_states": False,
}


class TorchMaskedLM(RuntimeModel):
    """`MaskedLM` over a transformers model."""

    _without_gradients: Any = torch.inference_mode
    _scales_by_call = False  # whether its products of 8 bits scale activations by all in a call

    def _load(self, choice: ModelChoice) -> None:
        if choice.provider_options:
            raise OptionError("provider options belong to the runtime onnx, not to torch")
        dtype = choice.dtype or "float32"
        if dtype not in TOLERANCE:
            raise OptionError(unknown("dtype", dtype, TOLERANCE))
        device = torch_device(choice.device)
        self._hash(self.files.weights)
        stored = stored_precision(self.files.weights)
        self._use(
            read_torch(self.files, getattr(torch, dtype), device),
            # float32 holds every stored type exactly; anything else changes the numbers.
            precision=stored if dtype == "float32" else f"{stored} computed in {dtype}",
            size_bytes=sum(path.stat().st_size for path in self.files.weights),
        )

    def _use(self, model: Any, **signed: Any) -> None:
        """Compute with a model of transformers where it is; `signed` are parts of the signature."""
        self._model = model
        self._loaded_as: dict[str, Any] = {}  # by loader, see `output_as`
        self.vocabulary = self._reading.result()
        self._width = int(model.config.get_text_config().vocab_size)
        width_note = self._width_note()
        refuse_unrepeatable(model.config, self._name)
        # Of each thread: several may be inside the model at a time.
        self._request = threading.local()
        tolerance = TOLERANCE.get(str(model.dtype).removeprefix("torch."), TOLERANCE["float32"])
        self._cut_head(tolerance)
        self._chunk = getattr(model.config, "local_attn_chunk_length", None) or 0  # of Reformer
        self._find_sharing(tolerance)
        parameters = list(model.parameters())
        self.memory_bytes = sum(p.numel() * p.element_size() for p in parameters)
        self._sign(
            device=str(model.device),
            # Quantized weights lie packed beside them.
            parameters=None if self._scales_by_call else sum(p.numel() for p in parameters),
            packages=("torch", "transformers"),
            notes=(
                TEXT_BY_TEXT if self._scales_by_call else SHARING[self._sharing],
                FULL_LOGITS if self._logit_bytes else "",
                width_note,
            ),
            **signed,
        )

    def _run(self, batch: PaddedBatch, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        positions = self._tensor(rows), self._tensor(cols)
        # Padding behind the texts of this call would be read by scales of activations.
        length = int(used_lengths(batch.attention_mask, rows, cols).max())
        batch = PaddedBatch(batch.input_ids[:, :length], batch.attention_mask[:, :length])
        if not self._logit_bytes:
            self._request.positions = positions
        try:
            logits: torch.Tensor = self._output(self._model, batch).logits
        finally:
            self._request.positions = None
        # [1, M, V] from the hook, else [B, T, V]
        asked_logits = logits[positions] if self._logit_bytes else logits[0]
        return asked_logits.float().cpu().numpy()

    def _run_states(self, batch: PaddedBatch, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        base = self._model.base_model
        if base is self._model:
            raise ModelError(
                f"{type(base).__name__} does not say which part of it is the encoder, so there are "
                "no vectors of words to look at: choose another model"
            )
        states: torch.Tensor = self._output(base, batch)[0]  # [B, T, H]
        if states.shape[:2] != batch.input_ids.shape:
            raise ModelError(
                f"the encoder of {self._name} gives no vector for each token, so there are no "
                "vectors of words to look at: choose another model"
            )
        return states[self._tensor(rows), self._tensor(cols)].float().cpu().numpy()

    def layer_states(self, input_ids: np.ndarray) -> tuple[np.ndarray, ...]:
        if self._logit_bytes:  # the head does not run by itself
            raise ModelError(
                f"{type(self._model).__name__} does not say which part of it is the head, so there "
                "is no guess behind each layer: choose another model"
            )
        ids, base = np.asarray(input_ids)[None], self._model.base_model
        batch = PaddedBatch(ids, np.ones_like(ids))
        output = self._output(base, batch, output_hidden_states=True)
        all_states: tuple[Any, ...] = getattr(output, "hidden_states", None) or ()
        # As the head reads them: [1, T, H].
        if {state.shape for state in all_states} != {(1, len(input_ids), output[0].shape[-1])}:
            raise ModelError(
                f"a {type(self._model).__name__} does not show a state of each token behind each "
                "layer (it pools tokens, or has two parts), so there is no guess behind each "
                "layer: choose another model"
            )
        *states, last = all_states
        if self._last_norm is not None:
            with self._without_gradients():
                states = [self._last_norm(state) for state in states]
        return tuple(state[0].float().cpu().numpy() for state in (*states, last))

    @cached_property
    def _last_norm(self) -> Any:
        """The norm behind the last layer of architectures that normalise before each part."""
        calls: list[tuple[torch.nn.Module, Any]] = []
        base = self._model.base_model
        hooks = []
        for name, module in base.named_modules():
            # The layers are modules in a list, so that their names have numbers.
            in_layer = any(part.isdigit() for part in name.split("."))
            if not in_layer and next(module.parameters(recurse=False), None) is not None:
                hook = module.register_forward_hook(lambda m, _, output: calls.append((m, output)))
                hooks.append(hook)
        try:
            last = self._output(base, self._probe_batch())[0]
        finally:
            for hook in hooks:
                hook.remove()
        return next((module for module, output in calls if output is last), None)

    def layer_logits(self, states: np.ndarray, cols: np.ndarray) -> np.ndarray:
        # What the encoder makes of any short text is replaced.
        asked_states = torch.from_numpy(states[cols]).to(self._model.device, self._model.dtype)
        self._request.states = asked_states.unsqueeze(0)
        try:
            logits = self._output(self._model, self._probe_batch()).logits
        finally:
            self._request.states = None
        return logits[0].float().cpu().numpy()

    def eager_output(self, batch: PaddedBatch, **inputs: Any) -> Any:
        """The encoder's output for a batch, its attention computed step by step ("eager").

        Fused attention, the default, hands out no weights. A copy of the modules is called, so that
        no call beside it is changed; the copy shares all weights.

        Raises:
            ModelError: if the copy cannot be made.
        """
        base = self._model.base_model
        shared = {id(part): part for part in (self, *base.parameters(), *base.buffers())}
        with opening("a model with eager attention", self._name, ModelError):
            encoder = copy.deepcopy(base, shared).eval()
            encoder.set_attn_implementation("eager")
        return self._output(encoder, batch, **inputs)

    def output_as(self, loader: str, batch: PaddedBatch, **inputs: np.ndarray) -> Any:
        """The output for a batch of the weights in another class of transformers.

        They are loaded a second time when this is first called.

        Args:
            loader: such as `AutoModelForPreTraining`.
            batch: the texts.
            inputs: more of them, integers [B, T], by name.
        """
        if loader not in self._loaded_as:
            model = read_torch(self.files, self._model.dtype, self._model.device, loader)
            self._loaded_as[loader] = model
        tensors = {name: self._tensor(values) for name, values in inputs.items()}
        return self._output(self._loaded_as[loader], batch, **tensors)

    def _output(self, module: Any, batch: PaddedBatch, **inputs: Any) -> Any:
        """A module's output for a batch, on this thread's share of the cores."""
        count = max(1, (self.threads or _THREADS) // sharing())
        if torch.get_num_threads() != count:  # of the calling thread
            torch.set_num_threads(count)
        try:
            with self._without_gradients():
                return module(
                    input_ids=self._tensor(batch.input_ids),
                    attention_mask=self._tensor(batch.attention_mask),
                    **inputs,
                )
        except Exception as error:  # a config can be wrong in ways that only a call shows
            rows, columns = batch.input_ids.shape
            raise ModelError(
                f"{self._name} failed on {rows} x {columns} tokens: {first_line(error)}"
            ) from error

    def _tensor(self, values: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(values, dtype=np.int64)).to(self._model.device)

    def _behind_base(self, _module: torch.nn.Module, _args: Any, output: Any) -> Any:
        """Hook between encoder and head: hidden states [B, T, H] -> [1, M, H]."""
        positions = getattr(self._request, "positions", None)
        states = getattr(self._request, "states", None)
        if positions is None and states is None:
            return None
        # A second hook of the same kind changes nothing.
        self._request.positions = self._request.states = None
        if states is None:
            states = output[0][positions].unsqueeze(0)
        if isinstance(output, tuple):
            return (states, *output[1:])
        output.last_hidden_state = states
        return output

    def _cut_head(self, tolerance: float) -> None:
        """Compute the head at the asked positions alone, where the full model agrees."""
        self._logit_bytes = 4
        expected, base = self.logits_at(*self._probe()), self._model.base_model
        if base is self._model:
            return
        self._hook = base.register_forward_hook(self._behind_base)
        self._logit_bytes = 0
        # Other kinds of heads fail in many ways.
        with suppress(ModelError, ValueError, TypeError, AttributeError):
            if not self._differs(expected, tolerance):
                return
        self._hook.remove()
        self._logit_bytes = 4


def plain_config(folder: Path, name: str) -> Any:
    """config.json for transformers, without settings that fetch code or change a call's outputs.

    A ModelError for stored quantization, whose kernels transformers fetches from the hub.
    """
    config = transformers_config(folder)
    for part in (config, config.get_text_config(decoder=True)):
        if getattr(part, "quantization_config", None):
            raise ModelError(
                f"config.json of {name} has a quantization_config, whose code transformers may "
                "fetch: choose the full-precision model, or an ONNX file"
            )
        for key, value in _FIXED_SETTINGS.items():
            setattr(part, key, value)
    return config


def refuse_unrepeatable(config: Any, name: str) -> None:
    """A ModelError for architectures whose numbers rest on more than weights and text."""
    if config.model_type == "mra":
        raise ModelError(
            f"{name} is an MRA, whose attention is a CUDA kernel that transformers fetches from "
            "the hub, and zero without it; code is never fetched: choose another model"
        )
    if config.model_type == "reformer" and "lsh" in config.attn_layers:
        raise ModelError(
            f"{name} is a Reformer with LSH attention, which hashes by random numbers that are "
            "drawn in each call: choose one whose attn_layers are all local, or another model"
        )


def read_torch(
    files: ModelFiles,
    dtype: torch.dtype,
    device: torch.device,
    loader: str = "AutoModelForMaskedLM",
) -> Any:
    """All weights in the class of transformers that `loader` chooses for config.json.

    A ModelError if it cannot be loaded, or has other weights than config.json says.
    """
    model, missing = read_incomplete(files, dtype, device, loader)
    refuse_missing(files.name, type(model).__name__, missing, tensor_names(files.weights))
    return model


def read_incomplete(
    files: ModelFiles,
    dtype: torch.dtype,
    device: torch.device,
    loader: str = "AutoModelForMaskedLM",
    vocabulary_size: int | None = None,
) -> tuple[Any, list[str]]:
    """As `read_torch`, with the names of weights that are missing: random numbers.

    `vocabulary_size` stands in place of that of config.json.
    """
    with _BUILDING, quiet_transformers(), opening("a model", files.name, ModelError):
        import transformers

        config = plain_config(files.folder, files.name)
        text_config = config.get_text_config()
        text_config.vocab_size = size = vocabulary_size or text_config.vocab_size
        model, info = getattr(transformers, loader).from_pretrained(
            files.folder,
            config=config,
            key_mapping=_WRAPPED,
            dtype=dtype,
            use_safetensors=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # to say which they are
            local_files_only=True,
            trust_remote_code=False,
        )
        model = model.to(device)
    rows = {
        stored[0]
        for _, stored, expected in info["mismatched_keys"]
        if len(stored) == len(expected) and (size, *stored[1:]) == tuple(expected)
    }
    if vocabulary_size is None and len(rows) == 1 and is_rounded_up(min(rows), size):
        return read_incomplete(files, dtype, device, loader, min(rows))
    refuse_unlike(files.name, model, info)
    missing = set(info["missing_keys"])
    _tie_biases(model, missing)
    return model.eval(), sorted(missing)


def _tie_biases(model: Any, missing: set[str]) -> None:
    """Fill in, and take from `missing`, a bias of the head that was stored under its second name.

    transformers 4 shared it between both names, also where the embeddings were not shared.
    """
    for tied in (model._tied_weights_keys or {}).items():
        absent = missing.intersection(tied)
        if tied[0].endswith(".bias") and len(absent) == 1:
            (name,) = absent
            (stored,) = {*tied} - absent
            model.get_parameter(name).data.copy_(model.get_parameter(stored).data)
            missing.remove(name)


def export_files(files: ModelFiles) -> "ModelProto":
    """`onnx_export.export_onnx` of the model in some files; errors as of `read_torch`."""
    from fillmask_ui.onnx_tools.onnx_export import export_onnx

    model = read_torch(files, torch.float32, torch.device("cpu"))
    model.set_attn_implementation("eager")
    return export_onnx(model)


def check_parity(exported: MaskedLM, reference: MaskedLM) -> float:
    """Largest |difference| of a logit at any token of three texts; a ModelError above 1e-3."""
    vocabulary, mask = exported.vocabulary, exported.vocabulary.mask_token
    long = f"In 1969 the first people walked on the {mask}, and the whole world {mask}. " * 8
    encodings = map(vocabulary.encode, (f"The {mask} is on the table.", mask, long))
    limit = min(exported.max_tokens, 256)
    batch = pad([np.array(text.ids) for text in encodings if len(text) <= limit], vocabulary.pad_id)
    inputs = (batch.input_ids, batch.attention_mask, *batch.attention_mask.nonzero())
    difference = exported.logits_at(*inputs) - reference.logits_at(*inputs)  # [M, V]
    parity = float(np.abs(difference).max())
    if not parity <= PARITY:
        raise ModelError(
            f"the exported graph differs from PyTorch by {parity:g} in a logit; at most {PARITY:g} "
            "is allowed: its logits are too large for float32, or the export is wrong"
        )
    return parity


def torch_device(name: str | None) -> torch.device:
    """The device of a name, by default the CPU; an OptionError if this machine lacks it."""
    # The kind of error depends on why: a name, a build, hardware or a module of a backend.
    with suppress(Exception):
        device = torch.device(name or "cpu")
        torch.zeros(1, device=device).item()  # which `meta` does not have
        return device
    available = ["cpu"]
    if torch.cuda.is_available():
        available.append("cuda")
    if torch.backends.mps.is_available():
        available.append("mps")
    raise OptionError(unknown("device", str(name), available))
