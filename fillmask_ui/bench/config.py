"""What `fillmask-ui bench` is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from fillmask_ui.errors import OptionError
from fillmask_ui.models.model_files import has_torch
from fillmask_ui.options import check_options, option
from fillmask_ui.texts import TextSource

DEFAULT_MODELS = ("embedded", "embedded:int8")


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    texts: int  # of the cross-entropy, where no number is given
    share: int  # one text in so many is also measured by pseudo-perplexity
    rounds: int  # of the evaluations
    loads: int  # fresh processes of each subject
    calls: int  # most timed calls of one sentence
    seconds: float  # after which no further round of one sentence begins


QUICK = Effort(texts=60, share=30, rounds=3, loads=1, calls=30, seconds=1.5)
FULL = Effort(texts=200, share=25, rounds=5, loads=3, calls=100, seconds=18.0)


@dataclass(frozen=True)
class BenchConfig:
    """Which models are measured on which texts, against what.

    Raises:
        OptionError: for numbers out of range, or peers without PyTorch.
    """

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
        if self.peers and not has_torch():
            raise OptionError(
                "--peers runs the same weights on PyTorch, which is not installed: "
                "pip install 'fillmask-ui[torch]', or leave --peers out"
            )

    @property
    def effort(self) -> Effort:
        return QUICK if self.quick else FULL

    def source(self) -> TextSource:
        """The texts of the cross-entropy."""
        samples = self.samples or self.effort.texts
        if self.file is None:
            return TextSource(samples=samples)
        return TextSource("file", self.file, samples=samples, format="txt")
