"""How a model was asked for, the same on the page, the command line and in run.json."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from fillmask_ui.options import check_options, option

RUNTIMES = ("auto", "onnx", "torch")
OPTIMIZATIONS = ("all", "extended", "basic", "none")
X64_PRECISIONS = ("auto", "on", "off")


@dataclass(frozen=True)
class ModelChoice:
    """The options that choose a model, as given; what `check_options` refuses is an OptionError."""

    reference: str = option(
        "embedded",
        "embedded, embedded:int8, embedded:torch, a folder, an .onnx file, or a Hugging Face id "
        "with an optional @revision.",
        label="Model",
        flags=("--model", "-m"),
        metavar="REF",
    )
    tokenizer: str | None = option(
        None,
        "Where the tokenizer of a single .onnx file comes from: a folder or a hub id.",
        flags=("--model-id", "--tokenizer"),
        metavar="ID",
    )
    onnx_file: str | None = option(  # relative to the folder or to its `onnx/`
        None, "Which ONNX file of a folder or hub id.", label="ONNX file", metavar="NAME"
    )
    # `onnx`, `torch`, or `auto`: ONNX where there is an ONNX file, else PyTorch
    runtime: str = option("auto", "auto, onnx or torch.", choices=RUNTIMES)
    provider: str | None = option(None, "ONNX Runtime execution provider, such as CPU or CUDA.")
    device: str | None = option(None, "PyTorch device, such as cpu or cuda:0.")
    dtype: str | None = option(None, "PyTorch weights: float32, float16 or bfloat16.")
    # None for all cores; calls at a time share them on PyTorch
    threads: int | None = option(None, "Threads that the model computes with.", least=1)
    graph_optimization: str = option(
        "all",
        "What ONNX Runtime fuses: all, extended, basic or none. Numbers of int8 depend on it.",
        choices=OPTIMIZATIONS,
    )
    # of ONNX Runtime, `session.x64quantprecision`: sums of products of bytes in 32 bits instead of
    # 16, in which they saturate; `auto` where the CPU has no instruction that does so anyway
    x64_quant_precision: str = option(
        "auto",
        "Exact products of bytes on x86: auto (on where they would saturate), on or off.",
        label="x64 quant precision",
        choices=X64_PRECISIONS,
    )

    def __post_init__(self) -> None:
        check_options(self)

    def second(self, reference: str) -> "ModelChoice":
        """How a second model is loaded beside it: its own runtime and precision, this one's device.

        >>> ModelChoice("embedded", dtype="float16", threads=2).second("embedded:int8").given()
        {'threads': 2}
        """
        choice = ModelChoice(reference, device=self.device, threads=self.threads)
        if reference.endswith(".onnx"):
            return replace(choice, tokenizer=self.tokenizer, provider=self.provider)
        return choice

    def to_dict(self) -> dict[str, Any]:
        """For run.json."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "ModelChoice":
        """The inverse of `to_dict`; what is missing has its default."""
        return cls(**{own.name: values[own.name] for own in fields(cls) if own.name in values})

    def given(self) -> dict[str, Any]:
        """What was asked for beside the reference.

        >>> ModelChoice("embedded", dtype="float16").given()
        {'dtype': 'float16'}
        """
        plain = asdict(ModelChoice(self.reference))
        return {name: value for name, value in asdict(self).items() if value != plain[name]}
