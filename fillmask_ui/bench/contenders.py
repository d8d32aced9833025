"""Who is measured on what: the models asked for, and with `--peers` other ways to run them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from fillmask_ui.bench import timing
from fillmask_ui.errors import ModelError, OptionError
from fillmask_ui.evaluation import EvaluationConfig, evaluate, summarize
from fillmask_ui.evaluation.measure import prepared
from fillmask_ui.filling import fill
from fillmask_ui.models import ModelChoice, load_choice
from fillmask_ui.models.load import find_files
from fillmask_ui.models.model_choice import parse_reference
from fillmask_ui.models.runtimes import RUNTIMES
from fillmask_ui.options import check_options, option
from fillmask_ui.scoring import exponentials
from fillmask_ui.texts import TextSource

if TYPE_CHECKING:
    from fillmask_ui.models.runtime_model import RuntimeModel

DEFAULT_MODELS = ("embedded", "embedded:int8")
_WORKS = ("sentence", "bare call", "cross-entropy", "pseudo-perplexity")
_DTYPES = ("float32", "bfloat16")  # that PyTorch computes in, with `--peers`


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    texts: int  # of the cross-entropy, by default
    share: int  # one text in so many is also measured by pseudo-perplexity
    rounds: int  # of the evaluations
    loads: int  # fresh processes of each contender
    calls: int  # most timed calls of one sentence
    seconds: float  # after which no further round of one sentence begins


QUICK = Effort(texts=60, share=30, rounds=3, loads=1, calls=30, seconds=1.5)
FULL = Effort(texts=200, share=25, rounds=5, loads=3, calls=100, seconds=18.0)


@dataclass(frozen=True)
class BenchConfig:
    """Which models are measured on which texts, against what."""

    models: tuple[str, ...] = DEFAULT_MODELS  # references
    peers: bool = option(
        False, "Also measure what is usually used instead, on the same weights (needs PyTorch)."
    )
    quick: bool = option(False, "Fewer texts and rounds: half a minute without peers.")
    file: str | None = option(None, "Texts to measure on, one per line.", metavar="F")
    samples: int | None = option(
        None, "At most so many texts: 200, or 60 with --quick.", metavar="N", least=1
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.peers and not RUNTIMES["torch"].is_installed:
            raise OptionError(
                "--peers runs the same weights on PyTorch, which is not installed: "
                "pip install 'fillmask-ui[torch]', or leave --peers out"
            )

    @property
    def effort(self) -> Effort:
        return QUICK if self.quick else FULL

    def source(self) -> TextSource:
        samples = self.samples or self.effort.texts
        if self.file is None:
            return TextSource(samples=samples)
        return TextSource("file", self.file, samples=samples, format="txt")


@dataclass(frozen=True)
class Contender:
    """One row of each table of results."""

    name: str
    folder: Path  # of config.json and, for a peer, of the weights
    choice: ModelChoice | None = None  # None for a peer
    peer: str = ""  # its name in `PEERS`
    works: tuple[str, ...] = _WORKS  # that it can do


@dataclass(frozen=True)
class Lineup:
    """All contenders, own models first, and what a reader should know of it."""

    contenders: tuple[Contender, ...]
    notes: tuple[str, ...] = ()


def lineup(config: BenchConfig) -> Lineup:
    """The contenders of a benchmark; models of the hub are fetched here.

    With peers, each model with PyTorch's weights beside it also runs on PyTorch in float32 and in
    bfloat16, and each set of weights has its peers.
    """
    own: dict[object, Contender] = {}
    on_torch: dict[object, Contender] = {}
    weights: dict[Path, str] = {}  # folder -> the model there
    notes = []
    for reference in dict.fromkeys(config.models):
        parsed, files = parse_reference(reference), find_files(ModelChoice(reference))
        folder = files.folder
        key = (folder, "float32") if files.runtime == "torch" else reference
        own[key] = Contender(reference, folder, ModelChoice(reference))
        if not config.peers:
            continue
        home = {"embedded": "embedded", "hub": reference}.get(parsed.kind, str(folder))
        if not _has_torch_weights(home):
            notes.append(f"{reference} has no model.safetensors beside it: measured without peers")
            continue
        weights.setdefault(folder, home)
        for dtype in _DTYPES:
            name = f"{home}:torch" + (f" {dtype}" if dtype != "float32" else "")
            choice = ModelChoice(home, runtime="torch", dtype=dtype)
            on_torch[folder, dtype] = Contender(name, folder, choice)
    # What was asked for keeps its name and comes first.
    contenders = [*{**own, **on_torch, **own}.values()]
    if weights:
        from fillmask_ui.bench.peers import installed_peers

        for folder, label in weights.items():
            for peer in installed_peers():
                name = f"{peer.name} ({label})" if len(weights) > 1 else peer.name
                contenders.append(Contender(name, folder, peer=peer.name, works=(peer.work,)))
    return Lineup(tuple(contenders), tuple(notes))


def _has_torch_weights(home: str) -> bool:
    try:
        find_files(ModelChoice(home, runtime="torch"))
    except ModelError:
        return False
    return True


class OwnModel:
    """What `load_model` returns, under the clock: text in, records out."""

    def __init__(self, choice: ModelChoice, shape: timing.EncoderShape | None) -> None:
        self._model, self._shape = cast("RuntimeModel", load_choice(choice)), shape
        self.max_tokens = self._model.max_tokens
        self.cpu_features = self._model.signature.cpu_features

    def sentence(self, texts: Sequence[str], tokens: int) -> timing.Timing | None:
        """`fill` of a sentence of so many tokens; None if there is no such sentence."""
        text = timing.sentence(self._model.vocabulary, texts, tokens, self.max_tokens)
        if text is None:
            return None
        seconds, filling = timing.timed_turn(lambda: fill(self._model, text, top_k=5))
        return timing.Timing(seconds, 1, filling.masks[0].candidates[0].nll_nats)

    def call_alone(self, texts: Sequence[str], tokens: int) -> timing.Timing | None:
        """The runtime's call behind `sentence` with its inputs ready, and nothing else."""
        text = timing.sentence(self._model.vocabulary, texts, tokens, self.max_tokens)
        if text is None:
            return None
        ids, place = timing.mask_place(self._model.vocabulary, text)
        asked = (ids, np.ones_like(ids), np.array([0]), np.array([place]))
        seconds, _ = timing.timed_turn(self._model.prepared_call(*asked))
        best = exponentials(self._model.logits_at(*asked)).log_probabilities.max()
        return timing.Timing(seconds, 1, -float(best))

    def evaluation(self, texts: Sequence[str], metric: str) -> timing.Timing:
        """`evaluate` and `summarize`, masks and all."""
        model, config = self._model, EvaluationConfig(metric, max_tokens=self.max_tokens)
        width = model.signature.vocabulary_size

        def run() -> float:
            rows = evaluate(model, texts, config)
            return summarize(rows, config=config, vocabulary_size=width).model.mean_nll_nats

        seconds, loss = timing.timed(run, 1)
        hidden = [item.hidden for item in prepared(model.vocabulary, texts, config)]
        sizes = [(len(own.ids), len(own.cols)) for own in hidden]
        return timing.evaluation_timing(seconds, loss, sizes, metric, self._shape)
