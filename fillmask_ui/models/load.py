"""`load_model`: from a reference to a model that is checked and ready."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fillmask_ui.assets import asset
from fillmask_ui.errors import ModelError, OptionError, unknown
from fillmask_ui.models.configuration import ModelConfig, read_config
from fillmask_ui.models.progress import LoadProgress, ProgressCallback, silent
from fillmask_ui.models.reference import (
    EMBEDDED_VARIANTS,
    ModelFiles,
    Reference,
    files_in_folder,
    files_of_onnx,
    need_torch,
    parse_reference,
)
from fillmask_ui.protocol import MaskedLM

_RUNTIMES = ("auto", "onnx", "torch")


def load_model(
    reference: str | Path | None = None,
    *,
    runtime: str = "auto",
    provider: str | None = None,
    threads: int | None = None,
    dtype: str | None = None,
    device: str | None = None,
    onnx_file: str | None = None,
    tokenizer: str | Path | None = None,
    graph_optimization: str = "all",
    on_progress: ProgressCallback | None = None,
) -> MaskedLM:
    """Load a masked language model and check that it is one.

    Args:
        reference: nothing or `embedded` for the model that ships with the project
            (`embedded:int8`, `embedded:torch` for its variants), a folder in Hugging Face layout,
            an .onnx file, or a hub id with an optional `@revision`.
        runtime: `onnx`, `torch`, or `auto`: ONNX where there is an ONNX file, else PyTorch.
        provider: ONNX Runtime execution provider; the CPU by default.
        threads: CPU threads of one call. PyTorch has one such number for the whole process.
        dtype: what PyTorch computes in: float32 (default), bfloat16, float16, float64.
        device: PyTorch device such as `cpu` (default) or `cuda`; for ONNX Runtime the provider
            of that name.
        onnx_file: which of several ONNX files, relative to the folder or to its `onnx/`.
        tokenizer: folder or hub id of the tokenizer, where it does not lie with the model.
        graph_optimization: of ONNX Runtime: none, basic, extended, all.
        on_progress: called with each step.

    Returns:
        A model that ran a probe: its logits are as wide as the vocabulary and not NaN.

    Raises:
        ModelError: if it cannot be found, read or run, or is no masked language model.
        OptionError: for an option that is not known here.
        NetworkError: if it has to be fetched and cannot be.

    >>> model = load_model()
    >>> model.signature.architecture, model.vocabulary.mask_token
    ('bert', '[MASK]')
    """
    if runtime not in _RUNTIMES:
        raise OptionError(unknown("runtime", runtime, _RUNTIMES))
    if threads is not None and threads < 1:
        raise OptionError(f"threads must be at least 1; it was {threads}")
    report = on_progress or silent
    parsed = parse_reference(reference)
    if parsed.kind == "embedded":
        implied, implied_file = EMBEDDED_VARIANTS[parsed.variant]
        if runtime not in ("auto", implied) and implied != "auto":
            raise OptionError(f"{parsed.name} runs on {implied}, not on {runtime}")
        runtime = runtime if implied == "auto" else implied
        if implied_file:
            _refuse_second_file(parsed, onnx_file)
            onnx_file = implied_file
    if onnx_file and runtime == "torch":
        raise OptionError("an ONNX file was chosen together with the runtime torch: drop one")
    files = _find(parsed, runtime, onnx_file, report)
    runtime = _decide(files, runtime)
    if runtime == "torch":
        need_torch(files.name)
    files = _with_tokenizer(files, tokenizer, report)
    config = read_config(files.folder, files.onnx and files.onnx.parent, files.tokenizer)
    config.refuse_other_tasks(files.name)
    return _load(
        files, config, runtime, report, (provider, threads, graph_optimization, dtype, device)
    )


def _find(
    parsed: Reference, runtime: str, onnx_file: str | None, report: ProgressCallback
) -> ModelFiles:
    if parsed.kind == "embedded":
        files = files_in_folder(parsed.name, asset("model"), onnx_file, pick=runtime != "torch")
        return replace(files, embedded=True)
    if parsed.kind == "folder" and parsed.path:
        return files_in_folder(parsed.name, parsed.path, onnx_file, pick=runtime != "torch")
    if parsed.kind == "file" and parsed.path:
        _refuse_second_file(parsed, onnx_file)
        return files_of_onnx(parsed.name, parsed.path)
    from fillmask_ui.models.hub import fetch_model

    return fetch_model(parsed, runtime, onnx_file, report)


def _refuse_second_file(parsed: Reference, onnx_file: str | None) -> None:
    if onnx_file:
        raise OptionError(
            f"{parsed.name} already names its ONNX file: leave out --onnx-file (onnx_file=)"
        )


def _decide(files: ModelFiles, runtime: str) -> str:
    if runtime == "auto":
        return "onnx" if files.onnx else "torch"
    if runtime == "onnx" and files.onnx is None:
        raise ModelError(
            f"{files.name} has no ONNX file: use the runtime torch, or export it to "
            "onnx/model.onnx in its folder"
        )
    if runtime == "torch" and not files.safetensors:
        raise ModelError(f"{files.name} has no .safetensors weights: use the runtime onnx")
    return runtime


def _with_tokenizer(
    files: ModelFiles, wanted: str | Path | None, report: ProgressCallback
) -> ModelFiles:
    """The files with the tokenizer that was named, or that lies with the model."""
    if wanted is None:
        if files.tokenizer is None:
            raise ModelError(
                f"{files.name} has no tokenizer beside it: name its folder or hub id with "
                "--tokenizer (tokenizer=)"
            )
        return files
    parsed = parse_reference(wanted)
    files = replace(files, embedded=False)
    if parsed.kind == "embedded":
        return replace(files, tokenizer=asset("model"))
    if parsed.kind == "folder":
        return replace(files, tokenizer=parsed.path)
    if parsed.kind == "hub":
        from fillmask_ui.models.hub import fetch_tokenizer

        return replace(files, tokenizer=fetch_tokenizer(parsed, report))
    raise OptionError(f"the tokenizer {wanted} is a file: give its folder or a hub id")


def _load(
    files: ModelFiles,
    config: ModelConfig,
    runtime: str,
    report: ProgressCallback,
    choices: tuple[str | None, int | None, str, str | None, str | None],
) -> MaskedLM:
    from fillmask_ui.models.vocabulary import load_own_vocabulary, load_vocabulary

    provider, threads, graph_optimization, dtype, device = choices
    report(LoadProgress("tokenizer", f"reading the tokenizer of {files.name}"))
    if files.tokenizer is None:
        raise ValueError("the tokenizer must be settled before")
    if files.embedded:
        vocabulary = load_own_vocabulary(files.tokenizer)
    else:
        vocabulary = load_vocabulary(files.tokenizer, files.name)
    report(LoadProgress("weights", f"reading the weights of {files.name}"))
    if runtime == "onnx":
        from fillmask_ui.models.onnx import OnnxMaskedLM, OnnxOptions

        if dtype:
            raise OptionError(
                f"a dtype ({dtype}) and the like belong to the runtime torch, not to onnx, whose "
                "precision is that of the file"
            )
        if provider and device:
            raise OptionError("for ONNX Runtime a device is a provider: give one of the two")
        # `--device cpu` means the same for both runtimes.
        options = OnnxOptions(provider or device, threads, graph_optimization)
        return OnnxMaskedLM(files, vocabulary, config, options)
    from fillmask_ui.models.torch import TorchMaskedLM, TorchOptions

    if provider:
        raise OptionError("provider belongs to the runtime onnx, not to torch")
    return TorchMaskedLM(files, vocabulary, config, TorchOptions(dtype, device, threads))
