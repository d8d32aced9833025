"""A masked language model that a program holds in memory, as `MaskedLM`: it may be in training.

Its weights are neither copied nor moved. During a call it is in evaluation mode and has a hook
behind its encoder; afterwards each of its modules is as it was. One call runs at a time.
"""

import hashlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fillmask_ui.batching import PaddedBatch
from fillmask_ui.errors import ModelError
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.models.model_files import ModelConfig, ModelFiles
from fillmask_ui.models.runtime_model import ALONE
from fillmask_ui.models.runtimes import class_names
from fillmask_ui.models.torch_model import TorchMaskedLM


class LiveMaskedLM(TorchMaskedLM):
    """`MaskedLM` over a model of transformers; signed anew when used after its weights changed."""

    _without_gradients = torch.no_grad  # what a module keeps from a call may be trained with

    def __init__(self, module: Any, read_vocabulary: Callable[[], Any], choice: ModelChoice):
        name = type(module).__name__
        config = ModelConfig({**module.config.to_dict(), "architectures": class_names(module)})
        config.refuse_other_tasks(name)
        self._model, self._lock, self._request = module, threading.Lock(), threading.local()
        files = ModelFiles(name, Path(), "torch", (), None)
        super().__init__(files, read_vocabulary, config, choice)

    def _load(self, choice: ModelChoice) -> None:
        model, token = self._model, np.array([[self._reading.result().mask_id]])
        output = self._output(model, PaddedBatch(token, np.ones_like(token)))
        if model.get_output_embeddings() is None or not hasattr(output, "logits"):
            raise ModelError(
                f"a {self._name} gives no logits over its vocabulary: load the checkpoint by "
                "AutoModelForMaskedLM"
            )
        self.threads = choice.threads or torch.get_num_threads()  # as its owner has set them
        self.concurrent_calls = 1
        self._state, self._hashing = self._versions(), self._beside.submit(state_sha256, model)
        weights = [weight for _, weight in _weights(model)]
        self._scales_by_call = any(weight.is_quantized for weight in weights)
        if self._scales_by_call:
            self._sharing = ALONE
        precision = "int8" if self._scales_by_call else str(model.dtype).removeprefix("torch.")
        size_bytes = sum(weight.numel() * weight.element_size() for weight in weights)
        self._use(model, precision=precision, size_bytes=size_bytes)

    def _cut_head(self, tolerance: float) -> None:
        if self._scales_by_call:
            self._logit_bytes = 4  # fewer positions would have another scale
            return
        super()._cut_head(tolerance)
        if not self._logit_bytes:
            self._hook.remove()  # `_output` registers it for each call

    def layer_states(self, input_ids: np.ndarray) -> tuple[np.ndarray, ...]:
        # To hand out hidden states transformers leaves hooks and a mark on its modules.
        before = [
            (module, {*vars(module)}, {*module._forward_hooks}) for module in self._model.modules()
        ]
        try:
            return super().layer_states(input_ids)
        finally:
            for module, names, hooks in before:
                for name in vars(module).keys() - names:
                    del vars(module)[name]
                for hook in module._forward_hooks.keys() - hooks:
                    del module._forward_hooks[hook]

    def _output(self, module: Any, batch: PaddedBatch, **inputs: Any) -> Any:
        model = self._model
        with self._lock:
            if hasattr(self, "signature") and (state := self._versions()) != self._state:
                sha256, self._state = state_sha256(model), state
                self.signature = replace(self.signature, device=str(model.device), sha256=sha256)
            in_training = [part for part in model.modules() if part.training]
            hook = model.base_model.register_forward_hook(self._behind_base)
            # Compiled by `module.compile()`: for each new shape that would take minutes.
            compiled_calls = {
                part: part._compiled_call_impl
                for part in model.modules()
                if part._compiled_call_impl
            }
            try:
                for part in compiled_calls:
                    part._compiled_call_impl = None
                model.eval()
                return super()._output(module, batch, return_dict=True, **inputs)
            finally:
                hook.remove()
                for part in in_training:
                    part.training = True
                for part, call in compiled_calls.items():
                    part._compiled_call_impl = call

    def _versions(self) -> list[Any]:
        """Address, count of changes and device of each weight: they differ after any change."""
        tensors = (*self._model.parameters(), *self._model.buffers())
        return [(tensor.data_ptr(), tensor._version, tensor.device) for tensor in tensors]


def state_sha256(module: Any) -> str:
    """Hash of name, type, shape and bytes of each weight by name; not that of a file of them."""
    digest = hashlib.sha256()
    for name, weight in _weights(module):
        digest.update(f"{name} {weight.dtype} {[*weight.shape]}\n".encode())
        values = weight.dequantize() if weight.is_quantized else weight
        digest.update(values.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _weights(module: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """All weights by name; quantized layers of PyTorch pack theirs in tuples, beside their type."""
    for name, entry in sorted(module.state_dict().items()):
        parts = entry if isinstance(entry, tuple) else (entry,)
        yield from ((name, part) for part in parts if isinstance(part, torch.Tensor))
