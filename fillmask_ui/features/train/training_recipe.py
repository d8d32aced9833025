"""The options of a training run and of a package, and the rows of the log."""

from dataclasses import MISSING, dataclass
from pathlib import Path

from fillmask_ui.errors import OptionError
from fillmask_ui.features.train.corpus import CorpusPart
from fillmask_ui.options import check_options, option


@dataclass(frozen=True)
class TrainingRecipe:
    """Every choice that shapes a run, apart from the text and the initial weights."""

    option_panel = "Optimizer"

    # Exactly one of `minutes` and `steps` is given.
    minutes: float | None = option(
        None,
        "Length of the run in minutes; the learning rate decays to zero at its end.",
        panel="Length",
    )
    steps: int | None = option(
        None,
        "Length of the run in optimizer steps, instead of --minutes.",
        least=1,
        panel="Length",
    )
    # T; positions are kept as int16
    block_tokens: int = option(192, "Tokens per row.", most=32_767, panel="Machine")
    batch_blocks: int = option(20, "Rows per step.", least=1, panel="Machine")  # B
    mask_probability: float = option(
        0.2,
        "Share of the tokens hidden in training; losses are reported at 0.15.",
        panel="Objective",
    )
    whole_word: bool = option(False, "Hide whole words, only in training.", panel="Objective")
    optimizer: str = option("adamw", "adamw or muon.", choices=("adamw", "muon"))
    learning_rate: float = option(5e-4, "Peak learning rate.")
    warmup: float = option(0.02, "Share of the run that is warm-up.")
    weight_decay: float = option(0.01, "Weight decay of the matrices.")
    clip: float = 1.0  # greatest gradient norm
    precision: str = option("bf16", "bf16 or fp32.", choices=("bf16", "fp32"), panel="Machine")
    validation_segments: int = 300  # held out of the training text to follow the loss
    # Each comes with a validation.
    checkpoint_minutes: float = option(10.0, "Minutes between checkpoints.", panel="Length")
    seed: int = option(42, "Random seed.", least=0, most=2**63 - 1, panel="Objective")
    device: str = option("cpu", "PyTorch device, such as cpu or cuda.", panel="Machine")
    compile: bool = option(False, "Fuse with torch.compile; needs a C++ compiler.", panel="Machine")
    blend: bool = option(
        False,
        "At the end, average with the initial weights at the share that is best on the validation "
        "paragraphs.",
    )

    def __post_init__(self) -> None:
        check_options(self)
        if (self.minutes is None) == (self.steps is None):
            raise OptionError("give either a number of minutes or a number of steps")
        if self.minutes is not None and self.minutes <= 0:
            raise OptionError(f"a run of {self.minutes} minutes is too short; take more")
        for name, share in (
            ("mask probability", self.mask_probability),
            ("learning rate", self.learning_rate),
        ):
            if not 0 < share < 1:
                raise OptionError(f"{name} {share} is outside (0, 1)")
        if not 0 <= self.warmup < 1:
            raise OptionError(f"warm-up {self.warmup} is outside [0, 1); it is a part of the run")


@dataclass(frozen=True)
class RunRequest:
    """What a run starts from: weights (`init`) or, from scratch, a config."""

    option_panel = "Start"

    text: list[str] = option(
        MISSING,
        "Text, one paragraph per line, plain or .gz, or a folder of such files; repeatable. "
        "A share such as :0.4 takes that part of the paragraphs, :3 reads each three times an "
        "epoch.",
        metavar="FILE[:SHARE]",
    )
    output: Path = option(MISSING, "Folder of the run.", flags=("--output", "-o"), metavar="DIR")
    init: str | None = option(
        None, "Weights to continue from: a folder or a hub id.", metavar="REF"
    )
    config: Path | None = option(
        None, "Start from scratch with this Hugging Face config.", metavar="FILE"
    )
    vocabulary_size: int | None = option(
        None,
        "With --init: trim the vocabulary to N tokens. With --config: size of the tokenizer that "
        "is trained on the text (16,000).",
        metavar="N",
    )
    threads: int | None = option(None, "CPU threads.", least=1, panel="Machine")

    def __post_init__(self) -> None:
        if (self.init is None) == (self.config is None):
            raise OptionError("give either --init (weights) or --config (from scratch)")
        _refuse_file(self.output)
        if not self.text:
            raise OptionError("give at least one text file")

    @property
    def texts(self) -> tuple[CorpusPart, ...]:
        return tuple(map(CorpusPart.parse, self.text))


@dataclass(frozen=True)
class PackageRequest:
    """What to make of a trained model; texts are `FILE` or `FILE:SHARE`."""

    source: Path = option(MISSING, "Folder of a training run, or of a model.", flags=("DIR",))
    output: Path = option(MISSING, "Folder to write.", flags=("--output", "-o"), metavar="DIR")
    vocabulary_size: int | None = option(
        None, "Trim the vocabulary to N tokens that --text uses.", metavar="N"
    )
    text: list[str] | None = option(
        None, "Text whose tokens are kept in the vocabulary; repeatable.", metavar="FILE[:SHARE]"
    )
    calibration: str | None = option(
        None,
        "Choose the int8 scheme by the loss on this text; without it: int8.",
        metavar="FILE[:SHARE]",
    )
    evaluate: str | None = option(
        None, "Held-out text to measure for the model card.", metavar="FILE[:SHARE]"
    )
    cloze: Path | None = option(
        None, "Cloze list to measure: JSON lines with the keys text and accepted.", metavar="FILE"
    )
    baseline: str | None = option(
        None,
        "A second model to measure, such as the one that training started from.",
        metavar="REF",
    )
    notes: Path | None = option(
        None, "Markdown file that the model card begins with.", metavar="FILE"
    )

    def __post_init__(self) -> None:
        if self.vocabulary_size is not None and not self.text:
            raise OptionError("trimming the vocabulary needs --text: whose tokens should stay?")
        _refuse_file(self.output)
        if self.source.resolve() == self.output.resolve():
            raise OptionError("the package must go into another folder than the training run")


def _refuse_file(output: Path) -> None:
    if output.is_file():
        raise OptionError(f"{output} is a file: name a folder to write")


@dataclass(frozen=True)
class LogRow:
    """One line of the log."""

    step: int  # optimizer steps so far
    elapsed_seconds: float  # training time so far, over all resumed parts
    progress: float  # part of the run that is over
    tokens: int  # seen so far, without padding
    epoch: float  # passes over the text so far, a fraction
    rate: float  # learning rate of the last step
    train_nll_nats: float  # mean since the last row, at the training share
    gradient_norm: float  # of the last step, before clipping
    validation_nll_nats: float | None = None  # at 15%, 80/10/10; None if not measured here
    validation_top1: float | None = None  # share of hidden tokens ranked first
