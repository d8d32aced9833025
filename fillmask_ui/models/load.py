"""`load_model`: from a reference to a model that is checked and ready; the models at hand."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import fillmask_ui.models.model_files as layout
from fillmask_ui.errors import ModelError, OptionError
from fillmask_ui.files import asset
from fillmask_ui.models.loading_progress import LoadProgress, ProgressCallback, silent
from fillmask_ui.models.model_choice import ModelChoice, check_threads, parse_reference
from fillmask_ui.models.runtimes import (
    LIVE_MODEL,
    OWNERS,
    RUNTIMES,
    WEIGHTS,
    WRAPPERS,
    class_names,
    import_target,
)
from fillmask_ui.models.vocabulary import load_embedded_vocabulary, load_vocabulary
from fillmask_ui.protocol import MaskedLM


def load_model(
    reference: str | Path | Any | None = None,
    *,
    runtime: str = "auto",
    device: str | None = None,
    provider_options: Mapping[str, str] | Sequence[str] = (),
    threads: int | None = None,
    dtype: str | None = None,
    onnx_file: str | None = None,
    tokenizer: str | Path | Any | None = None,
    graph_optimization: str = "all",
    x64_quant_precision: str = "auto",
    on_progress: ProgressCallback | None = None,
) -> MaskedLM:
    """Load a masked language model, the embedded one by default, and check that it is one.

    The options are those of `ModelChoice`, and `on_progress` that of `load_choice`. The model has
    run a probe: its logits are as wide as the vocabulary and not NaN.

    A model of transformers that is in memory is used as it is, and so is that of a `Trainer` or a
    fill-mask pipeline. Its tokenizer is `tokenizer` (live, a folder or a hub id), else that of the
    trainer or pipeline, else that of where the model was loaded from.

    Raises:
        ModelError: if it cannot be found, read or run, or is not a masked language model.
        OptionError: for an unknown value of an option.
        NetworkError: if it has to be fetched and cannot be.

    >>> model = load_model()
    >>> model.signature.architecture, model.vocabulary.mask_token
    ('bert', '[MASK]')
    """
    is_named = reference is None or isinstance(reference, str | Path)
    is_tokenizer_live = not (tokenizer is None or isinstance(tokenizer, str | Path))
    if is_named and is_tokenizer_live:
        raise OptionError(
            f"the tokenizer was a {type(tokenizer).__name__}, which goes with a model in memory: "
            "for an .onnx file name the folder or hub id of its tokenizer"
        )
    settings: Any = provider_options  # `ModelChoice` refuses what is no list
    if isinstance(provider_options, Mapping):
        settings = [f"{name}={value}" for name, value in provider_options.items()]
    choice = ModelChoice(
        str(reference) if is_named and reference is not None else "embedded",
        tokenizer=None if tokenizer is None or is_tokenizer_live else str(tokenizer),
        onnx_file=onnx_file,
        runtime=runtime,
        device=device,
        provider_options=settings,
        dtype=dtype,
        threads=threads,
        graph_optimization=graph_optimization,
        x64_quant_precision=x64_quant_precision,
    )
    if is_named:
        return load_choice(choice, on_progress)
    return _load_live(reference, tokenizer, choice, on_progress or silent)


def _load_live(owner: Any, tokenizer: Any, choice: ModelChoice, report: ProgressCallback) -> Any:
    """A model in memory, or that of its trainer or pipeline; errors as of `load_model`."""
    if unfit := set(choice.changed_options()).difference({"threads", "tokenizer"}):
        raise OptionError(
            f"{', '.join(sorted(unfit))}: for models that are read from files; one in memory is "
            "used as it is"
        )
    check_threads(choice.threads)
    module, owned_tokenizer = owner, None
    for owner_class, tokenizer_attribute in OWNERS.items():
        if owner_class in class_names(owner):
            module, owned_tokenizer = owner.model, getattr(owner, tokenizer_attribute, None)
    while wrapper := next((name for name in class_names(module) if name in WRAPPERS), None):
        module = getattr(module, WRAPPERS[wrapper])
    name = type(module).__name__
    if "PreTrainedModel" not in class_names(module):
        raise ModelError(
            f"no model can be loaded from an object of the type {name}: give a name or a folder, "
            "a model of transformers (AutoModelForMaskedLM) with tokenizer=, a Trainer or a "
            "fill-mask pipeline"
        )
    source = tokenizer or owned_tokenizer or module.name_or_path
    if source and isinstance(source, str | Path):
        source = _tokenizer_folder(str(source), report)
    if not isinstance(source, Path) and "PreTrainedTokenizerBase" not in class_names(source):
        problem = f"this is of the type {type(source).__name__}" if source else "none was found"
        raise ModelError(
            f"the {name} needs its tokenizer, and {problem}: give one of transformers "
            "(AutoTokenizer), a folder or a hub id as tokenizer="
        )
    return import_target(LIVE_MODEL)(module, partial(load_vocabulary, source, name), choice)


def _tokenizer_folder(reference: str, report: ProgressCallback) -> Path:
    parsed = parse_reference(reference)
    if parsed.kind == "hub":
        from fillmask_ui.models.hub_models import fetch_tokenizer

        return fetch_tokenizer(parsed, report)
    folder = parsed.path or asset("model")
    layout.refuse_foreign(parsed.name, folder)
    return folder


def load_choice(
    choice: ModelChoice,
    on_progress: ProgressCallback | None = None,
    open_as: Callable[..., Any] | None = None,
) -> MaskedLM:
    """`load_model` with its options in one value.

    `on_progress` is called before each step and often while files are fetched, from one thread at a
    time. `open_as` stands in place of the class of the runtime.
    """
    check_threads(choice.threads)
    report = on_progress or silent
    parsed = parse_reference(choice.reference)
    files = find_files(choice, report)
    runtime, name, folder = RUNTIMES[files.runtime], files.name, files.tokenizer
    runtime.need(name)
    if choice.tokenizer is not None:
        if parsed.kind != "file" and folder is not None:
            raise OptionError(
                "--tokenizer names the tokenizer of an .onnx file; "
                "name the model itself with --model"
            )
        folder = _tokenizer_folder(choice.tokenizer, report)
    if folder is None:
        raise ModelError(
            f"{name} has no tokenizer beside it: name its folder or hub id with "
            "--tokenizer (tokenizer=)"
        )
    files = replace(files, tokenizer=folder)
    config = layout.read_config(files.folder, files.weights[0].parent, folder)
    config.refuse_other_tasks(name)
    read_vocabulary = partial(load_vocabulary, folder, name)
    if parsed.kind == "embedded":
        read_vocabulary = partial(load_embedded_vocabulary, folder)
    for step in ("tokenizer", "weights"):
        report(LoadProgress(f"reading the {step} of {name}", stage=step))
    model_class = open_as or import_target(runtime.model)
    model: MaskedLM = model_class(files, read_vocabulary, config, choice)
    return model


def local_files(choice: ModelChoice) -> layout.ModelFiles | None:
    """`find_files` without asking the hub: None for a model there.

    An OptionError for a device that is not here, before texts or models are fetched.
    """
    if parse_reference(choice.reference).kind == "hub":
        return None
    files = find_files(choice)
    runtime = RUNTIMES[files.runtime]
    if runtime.devices and choice.device:
        import_target(runtime.devices)(choice.device, choice.provider_options)
    return files


def find_files(choice: ModelChoice, report: ProgressCallback = silent) -> layout.ModelFiles:
    """The files that a reference and its options mean; an OptionError if they contradict."""
    parsed = parse_reference(choice.reference)
    runtime = parsed.implied.get("runtime", choice.runtime)
    if choice.runtime not in ("auto", runtime):
        raise OptionError(f"{parsed.name} runs on {runtime}, not on {choice.runtime}")
    if choice.onnx_file and (parsed.kind == "file" or "onnx_file" in parsed.implied):
        raise OptionError(
            f"{parsed.name} already names its ONNX file: leave out --onnx-file (onnx_file=)"
        )
    if choice.onnx_file and runtime not in ("auto", "onnx"):
        raise OptionError(f"an ONNX file was chosen with the runtime {runtime}: drop one")
    onnx_file = parsed.implied.get("onnx_file", choice.onnx_file)
    if parsed.kind == "hub":
        from fillmask_ui.models.hub_models import fetch_model

        return fetch_model(parsed, runtime, onnx_file, report)
    folder = parsed.path or asset("model")
    if parsed.kind == "file":
        # The tokenizer lies beside the file or, of one in `onnx/`, one folder up, or is named.
        file, folder = folder, folder.parent
        has_none = folder.name == "onnx" and not layout.has_tokenizer(folder)
        if has_none and layout.has_tokenizer(folder.parent):
            folder = folder.parent
        onnx_file = file.relative_to(folder).as_posix()
    return layout.files_in_folder(parsed.name, folder, runtime, onnx_file)


@dataclass(frozen=True)
class AvailableModel:
    """A model that loads without network."""

    reference: str  # for `load_model`
    runtimes: tuple[str, ...]  # keys of `RUNTIMES`, the default first
    size_bytes: int  # on disk: of the weights that it reads, of a cached model of all its files
    where: str  # `embedded` or `local cache`
    note: str = ""


def available_models() -> tuple[AvailableModel, ...]:
    """The embedded models, then those in the Hugging Face cache by name.

    >>> [model.reference for model in available_models()][:3]
    ['embedded', 'embedded:int8', 'embedded:torch']
    """
    from fillmask_ui.models.hub_models import cached_models

    int8_note = "half the size; results vary slightly with the CPU"
    models = [
        _embedded("", ("onnx", "torch"), "model.onnx", "float16 weights"),
        _embedded(":int8", ("onnx",), "onnx/model_int8.onnx", int8_note),
        _embedded(":torch", ("torch",), WEIGHTS, "the same weights on PyTorch"),
    ]
    for reference, (folder, size) in cached_models().items():
        names = layout.names_in(folder)
        runtimes = [runtime for runtime, row in RUNTIMES.items() if row.among(names)]
        with suppress(OptionError):  # one of several ONNX files has to be chosen
            default = layout.files_in_folder(reference, folder).runtime
            runtimes = [default, *(runtime for runtime in runtimes if runtime != default)]
        models.append(AvailableModel(reference, tuple(runtimes), size, "local cache"))
    for number, model in enumerate(models):
        rows = [RUNTIMES[runtime] for runtime in model.runtimes]
        if not any(row.is_installed for row in rows):
            needed = " or ".join(f"{row.title}: {row.install}" for row in rows)
            models[number] = replace(model, note=f"needs {needed}")
    return tuple(models)


@cache
def _embedded(variant: str, runtimes: tuple[str, ...], file: str, note: str) -> AvailableModel:
    from fillmask_ui.models.onnx_graph import read_graph

    folder = asset("model")
    size = (folder / file).stat().st_size
    if file != WEIGHTS:  # with the weights that it refers to
        size = read_graph(folder / file, folder, "embedded").size_bytes
    return AvailableModel(f"embedded{variant}", runtimes, size, "embedded", note)
