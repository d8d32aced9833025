"""An ONNX file as it is: the whole graph, not cut, anywhere; NaN is not refused but handed on."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import onnx

from fillmask_ui.errors import ModelError
from fillmask_ui.features.quantize.risky_constants import risky_constants
from fillmask_ui.masking import HiddenTokens
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.models.onnx_devices import CPU, Device
from fillmask_ui.models.onnx_model import OnnxMaskedLM, open_session, runtime_settings

PLAIN = "plain"  # beside the levels: all options as ONNX Runtime has them by default
Logits = Iterable[np.ndarray]  # [M, V] of each text


class OnnxFile(OnnxMaskedLM):
    """A file of a masked language model, to be opened in many ways."""

    def _load(self, choice: ModelChoice) -> None:
        if self.files.runtime != "onnx":
            raise ModelError(
                f"{self._name} has no ONNX file, and that is what is checked: write one with "
                f"fillmask-ui export {self._name} -o FOLDER, and name FOLDER"
            )
        self.vocabulary, self._choice = self._reading.result(), choice
        self.graph_files = self._file.files
        self.constants = risky_constants(onnx.load(self.graph_files.path, load_external_data=False))
        self._hash(self.graph_files.all_paths)
        session = open_session(self._file, Device(), replace(choice, graph_optimization="none"))
        self._source = source = self._with_logits(session, self._file)
        self._sign(
            ("onnxruntime",),
            (),
            device=CPU,
            precision=source.precision,
            settings=runtime_settings(choice),
            parameters=source.parameters,
            size_bytes=source.size_bytes,
        )

    def feeds(self, ids: np.ndarray) -> dict[str, np.ndarray]:
        """The inputs for one text, int64 [T], by name; padded where the graph has a fixed size."""
        return self.arrays(ids[None], np.ones_like(ids)[None])

    def run_on(self, device: Device, level: str, hidden: Sequence[HiddenTokens]) -> Logits:
        """Logits at the hidden positions, `level` may be `PLAIN`; errors as of `open_session`."""
        choice = None if level == PLAIN else replace(self._choice, graph_optimization=level)
        session, name = open_session(self._source, device, choice), self.logits_name
        for text in hidden:
            yield self._call(session, self.feeds(text.input_ids), [name])[name][0, text.cols]
