"""What else an ONNX file can end in: the encoder's states, or two heads at a time.

Few ever ask for these, so each is a session of its own, with a copy of the weights, that is opened
when it is first asked for. The session of the logits knows nothing of them.
"""

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import onnxruntime as ort

from fillmask_ui.errors import ModelError
from fillmask_ui.models.files import ModelFiles
from fillmask_ui.models.graph_files import GraphSource

if TYPE_CHECKING:
    from fillmask_ui.models.graph import ParsedGraph

# What exporters call the logits of next sentence prediction.
_ORDER = re.compile(r"seq_relationship|next_sentence|nsp_logits", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Pairs:
    """The whole graph of a model with two heads."""

    session: ort.InferenceSession
    tokens: str  # its output [B, T, V]
    order: str  # its output [B, 2]


class Endings:
    """Other sessions of one file, safe to ask for from many threads.

    Args:
        files: of the model.
        source: that gives its logits, whole or cut.
        opened: makes a session of a source.
    """

    def __init__(
        self,
        files: ModelFiles,
        source: GraphSource,
        opened: Callable[[GraphSource], ort.InferenceSession],
    ) -> None:
        self._files, self._source, self._opened = files, source, opened
        self._opening = threading.Lock()
        self._states: ort.InferenceSession | None = None
        self._pairs: Pairs | None = None

    def states(self) -> ort.InferenceSession:
        """Its one output is float32 [M, H]; a ModelError where that is not to be found."""
        with self._opening:
            if self._states is None:
                ending = self._graph().states(self._source)
                if ending is None:
                    raise ModelError(
                        f"the ONNX graph of {self._files.name} does not show where its encoder "
                        "ends and its head begins, so there are no vectors of words to look at: "
                        "choose the embedded model, or one that runs on PyTorch"
                    )
                self._states = self._opened(ending)
            return self._states

    @cached_property
    def order(self) -> str:
        """Name of the output of a next-sentence head, blank where there is none."""
        return next(filter(_ORDER.search, self._graph().outputs), "")

    def pairs(self) -> Pairs:
        """Both heads; a ModelError where the file has one alone."""
        if not self.order:
            raise ModelError(f"{self._files.name} has no head for next sentence prediction")
        with self._opening:
            if self._pairs is None:
                graph = self._graph()
                tokens = graph.logits_name(self._source)
                self._pairs = Pairs(self._opened(graph.source), tokens, self.order)
            return self._pairs

    def _graph(self) -> "ParsedGraph":
        """The file, looked into once more."""
        from fillmask_ui.models.graph import read_graph

        return read_graph(self._files.weights[0], self._files.folder, self._files.name)
