"""What the two commands are asked for: a training run, and a package of a trained model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fillmask_ui.errors import OptionError
from fillmask_ui.training.corpus import CorpusPart


@dataclass(frozen=True)
class RunRequest:
    """What a run starts from.

    Attributes:
        texts: the training text.
        output: folder of the run.
        init: folder (or hub id) of the weights to continue from.
        config: Hugging Face config file to start from scratch with; one of the two is given.
        vocabulary_size: trim the vocabulary of `init` to so many tokens; from scratch, the size
            of the tokenizer that is trained on the text.
        threads: CPU threads; None leaves torch's choice.
    """

    texts: tuple[CorpusPart, ...]
    output: Path
    init: str | None = None
    config: Path | None = None
    vocabulary_size: int | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        if (self.init is None) == (self.config is None):
            raise OptionError("give either --init (weights) or --config (from scratch)")
        if not self.texts:
            raise OptionError("give at least one text file")


@dataclass(frozen=True)
class PackageRequest:
    """What to make of a trained model.

    Attributes:
        source: folder of a training run, or any Hugging Face masked-LM folder.
        output: folder to write.
        texts: whose tokens decide what a trimmed vocabulary keeps.
        vocabulary_size: trim to so many tokens; None keeps all.
        calibration: text by which the int8 scheme is chosen; None takes per channel throughout.
        evaluate: held-out text for the card's figures.
        cloze: cloze list for the card's figures.
        compare: a model to measure beside it, such as the one that training started from.
        notes: Markdown that the card begins with: provenance, licences, limits.
    """

    source: Path
    output: Path
    texts: tuple[CorpusPart, ...] = ()
    vocabulary_size: int | None = None
    calibration: CorpusPart | None = None
    evaluate: CorpusPart | None = None
    cloze: Path | None = None
    compare: str | None = None
    notes: Path | None = None

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
