"""`load_model`: from a reference to a model that is checked and ready."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from fillmask_ui.assets import asset
from fillmask_ui.errors import ModelError, OptionError
from fillmask_ui.models.choice import ModelChoice
from fillmask_ui.models.configuration import read_config
from fillmask_ui.models.files import ModelFiles, files_in_folder, has_tokenizer, need_torch
from fillmask_ui.models.progress import LoadProgress, ProgressCallback, silent
from fillmask_ui.models.reference import Reference, parse_reference
from fillmask_ui.protocol import MaskedLM


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
    x64_quant_precision: str = "auto",
    on_progress: ProgressCallback | None = None,
) -> MaskedLM:
    """Load a masked language model and check that it is one.

    The options are those of `ModelChoice`, and `on_progress` is that of `load_choice`. Without a
    reference it is the embedded model.

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
    choice = ModelChoice(
        "embedded" if reference is None else str(reference),
        tokenizer=None if tokenizer is None else str(tokenizer),
        onnx_file=onnx_file,
        runtime=runtime,
        provider=provider,
        device=device,
        dtype=dtype,
        threads=threads,
        graph_optimization=graph_optimization,
        x64_quant_precision=x64_quant_precision,
    )
    return load_choice(choice, on_progress)


def load_choice(choice: ModelChoice, on_progress: ProgressCallback | None = None) -> MaskedLM:
    """`load_model` with its options in one value.

    `on_progress` is called before each step, and many times while files are fetched: then from
    other threads too, never from two at a time.
    """
    from fillmask_ui.models.runtime import check_threads  # loads numpy, which --help does without

    check_threads(choice.threads)
    report = on_progress or silent
    parsed = parse_reference(choice.reference)
    files = _find(parsed, _with_implied(parsed, choice), report)
    if files.runtime == "torch":
        need_torch(files.name)
    if choice.tokenizer is not None:
        files = replace(files, tokenizer=_find_tokenizer(choice.tokenizer, report))
    if files.tokenizer is None:
        raise ModelError(
            f"{files.name} has no tokenizer beside it: name its folder or hub id with "
            "--tokenizer (tokenizer=)"
        )
    config = read_config(files.folder, files.weights[0].parent, files.tokenizer)
    config.refuse_other_tasks(files.name)

    from fillmask_ui.models.vocabulary import load_own_vocabulary, load_vocabulary

    report(LoadProgress("tokenizer", f"reading the tokenizer of {files.name}"))
    if parsed.kind == "embedded" and choice.tokenizer is None:
        read_vocabulary = partial(load_own_vocabulary, files.tokenizer)
    else:
        read_vocabulary = partial(load_vocabulary, files.tokenizer, files.name)
    report(LoadProgress("weights", f"reading the weights of {files.name}"))
    if files.runtime == "onnx":
        from fillmask_ui.models.onnx import OnnxMaskedLM

        return OnnxMaskedLM(files, read_vocabulary, config, choice)
    from fillmask_ui.models.torch import TorchMaskedLM

    return TorchMaskedLM(files, read_vocabulary, config, choice)


def _with_implied(parsed: Reference, choice: ModelChoice) -> ModelChoice:
    """The choice with the options that the reference stands for."""
    implied = dict(parsed.implied)
    if choice.runtime not in ("auto", implied.get("runtime", choice.runtime)):
        raise OptionError(f"{parsed.name} runs on {implied['runtime']}, not on {choice.runtime}")
    if choice.onnx_file and (parsed.kind == "file" or "onnx_file" in implied):
        raise OptionError(
            f"{parsed.name} already names its ONNX file: leave out --onnx-file (onnx_file=)"
        )
    if choice.onnx_file and "torch" in (choice.runtime, implied.get("runtime")):
        raise OptionError("an ONNX file was chosen together with the runtime torch: drop one")
    return replace(
        choice,
        runtime=implied.get("runtime", choice.runtime),
        onnx_file=implied.get("onnx_file", choice.onnx_file),
    )


def _find(parsed: Reference, choice: ModelChoice, report: ProgressCallback) -> ModelFiles:
    if parsed.kind == "hub":
        from fillmask_ui.models.hub import fetch_model

        return fetch_model(parsed, choice.runtime, choice.onnx_file, report)
    folder, onnx_file = parsed.path or asset("model"), choice.onnx_file
    if parsed.kind == "file":
        # The tokenizer lies beside the file or one folder up, or is named.
        file = folder
        homes = [file.parent, file.parent.parent] if file.parent.name == "onnx" else [file.parent]
        folder = next(filter(has_tokenizer, homes), file.parent)
        onnx_file = file.relative_to(folder).as_posix()
    return files_in_folder(parsed.name, folder, choice.runtime, onnx_file)


def _find_tokenizer(wanted: str, report: ProgressCallback) -> Path:
    parsed = parse_reference(wanted)
    if parsed.kind == "file":
        raise OptionError(f"the tokenizer {wanted} is a file: give its folder or a hub id")
    if parsed.kind == "hub":
        from fillmask_ui.models.hub import fetch_tokenizer

        return fetch_tokenizer(parsed, report)
    return parsed.path or asset("model")
