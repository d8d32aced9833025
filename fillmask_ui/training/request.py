"""What the two commands are asked for: a training run, and a package of a trained model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fillmask_ui.errors import OptionError
from fillmask_ui.training.corpus import CorpusPart


@dataclass(frozen=True)
class RunRequest:
    """What a run starts from."""

    texts: tuple[CorpusPart, ...]  # the training text
    output: Path  # folder of the run
    init: str | None = None  # folder (or hub id) of the weights to continue from
    # Hugging Face config file to start from scratch with; one of the two is given
    config: Path | None = None
    # trim the vocabulary of `init` to so many tokens; from scratch, the size of the tokenizer that
    # is trained on the text
    vocabulary_size: int | None = None
    threads: int | None = None  # CPU threads; None leaves torch's choice

    def __post_init__(self) -> None:
        if (self.init is None) == (self.config is None):
            raise OptionError("give either --init (weights) or --config (from scratch)")
        if not self.texts:
            raise OptionError("give at least one text file")


@dataclass(frozen=True)
class PackageRequest:
    """What to make of a trained model."""

    source: Path  # folder of a training run, or any Hugging Face masked-LM folder
    output: Path  # folder to write
    texts: tuple[CorpusPart, ...] = ()  # whose tokens decide what a trimmed vocabulary keeps
    vocabulary_size: int | None = None  # trim to so many tokens; None keeps all
    # text by which the int8 scheme is chosen; None takes per channel throughout
    calibration: CorpusPart | None = None
    evaluate: CorpusPart | None = None  # held-out text for the card's figures
    cloze: Path | None = None  # cloze list for the card's figures
    # a model to measure beside it, such as the one that training started from
    compare: str | None = None
    notes: Path | None = None  # Markdown that the card begins with: provenance, licences, limits

    def __post_init__(self) -> None:
        if self.vocabulary_size is not None and not self.texts:
            raise OptionError("trimming the vocabulary needs --text: whose tokens should stay?")
        if self.source.resolve() == self.output.resolve():
            raise OptionError("the package must go into another folder than the training run")
        if not self.source.is_dir():
            raise OptionError(f"no folder {str(self.source)!r}; give that of a training run")
        for path in (self.cloze, self.notes):
            if path is not None and not path.is_file():
                raise OptionError(f"no file {str(path)!r}")
