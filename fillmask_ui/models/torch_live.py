"""A masked language model that a program holds in memory, as `MaskedLM`: it may be in training.

Its weights are neither copied nor moved. During a call it is in evaluation mode and has a hook
behind its encoder; afterwards each of its modules is as it was. One call runs at a time.
"""

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fillmask_ui.batching import PaddedBatch
from fillmask_ui.errors import ModelError
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.models.model_files import ModelConfig, ModelFiles
from fillmask_ui.models.runtimes import kinds_of
from fillmask_ui.models.torch_model import TorchMaskedLM
from fillmask_ui.models.vocabulary import TokenizerVocabulary


class LiveMaskedLM(TorchMaskedLM):
    """`MaskedLM` over a model of transformers in memory.

    It is signed anew, with the hash of its weights, when it is used after they have changed.
    """

    _without_gradients = torch.no_grad  # what a module keeps from a call may be trained with

    def __init__(
        self, module: Any, read_vocabulary: Callable[[], TokenizerVocabulary], choice: ModelChoice
    ) -> None:
        name = type(module).__name__
        config = ModelConfig({**module.config.to_dict(), "architectures": kinds_of(module)})
        config.refuse_other_tasks(name)
        self._model, self._alone, self._asked = module, threading.Lock(), threading.local()
        files = ModelFiles(name, Path(), "torch", (), None)
        super().__init__(files, read_vocabulary, config, choice)

    def _load(self, choice: ModelChoice) -> None:
        model = self._model
        if model.get_output_embeddings() is None or not hasattr(self._plain_output(), "logits"):
            raise ModelError(
                f"a {self._name} gives no logits over its vocabulary: load the checkpoint by "
                "AutoModelForMaskedLM"
            )
        self.threads = choice.threads or torch.get_num_threads()  # as its owner has set them
        self.concurrent_calls = 1
        self._state, self._hashing = self._versions(), self._beside.submit(state_sha256, model)
        tensors = model.state_dict().values()
        size_bytes = sum(own.numel() * own.element_size() for own in tensors)
        self._use(model, precision=str(model.dtype).removeprefix("torch."), size_bytes=size_bytes)

    def _plain_output(self) -> Any:
        token = np.array([[self._reading.result().mask_id]])
        return self._output(self._model, PaddedBatch(token, np.ones_like(token)))

    def _cut_head(self, tolerance: float) -> None:
        super()._cut_head(tolerance)
        if not self._logit_bytes:
            self._placed.remove()  # `_borrowed` places it for each call

    def _output(self, module: Any, batch: PaddedBatch, **more: Any) -> Any:
        with self._borrowed():
            return super()._output(module, batch, return_dict=True, **more)

    @contextmanager
    def _borrowed(self) -> Iterator[None]:
        """The model to compute with, and given back as it was."""
        with self._alone:
            if hasattr(self, "signature") and (state := self._versions()) != self._state:
                device, sha256 = str(self._model.device), state_sha256(self._model)
                self.signature = replace(self.signature, device=device, sha256=sha256)
                self._state = state
            trained = [module for module in self._model.modules() if module.training]
            hook = self._model.base_model.register_forward_hook(self._behind_base)
            try:
                self._model.eval()
                yield
            finally:
                hook.remove()
                for module in trained:
                    module.training = True

    def _versions(self) -> tuple[Any, ...]:
        """What changes with the weights: each counts its changes, or is another one."""
        tensors = (*self._model.parameters(), *self._model.buffers())
        return tuple((own.data_ptr(), own._version, own.device) for own in tensors)


def state_sha256(module: Any) -> str:
    """Hash of the name, type, shape and bytes of each weight, in the order of their names.

    It is not that of a file that holds them, whose layout it does not know.
    """
    digest = hashlib.sha256()
    for name, weight in sorted(module.state_dict().items()):
        digest.update(f"{name} {weight.dtype} {[*weight.shape]}\n".encode())
        own = weight.detach().cpu().contiguous().reshape(-1)
        digest.update(own.view(torch.uint8).numpy().data)
    return digest.hexdigest()
