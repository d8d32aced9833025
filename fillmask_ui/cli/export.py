"""`fillmask-ui export`: a model on PyTorch as an ONNX folder."""

from __future__ import annotations

from fillmask_ui.cli.options import Folder, Force, Json, Source, Threads
from fillmask_ui.cli.terminal import load, print_json, print_line, results, tell
from fillmask_ui.models import ModelChoice
from fillmask_ui.quantizing.make_variants import Variant
from fillmask_ui.quantizing.make_variants import export as exports


def export(
    reference: Source,
    *,
    output: Folder,
    force: Force = False,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Write a PyTorch model as ONNX in float32, and compare it with PyTorch.

    The folder loads by its name; further variants of `fillmask-ui quantize` go beside it.
    """
    steps = exports(ModelChoice(reference, threads=threads), output, force=force, load=load)
    made: list[Variant] = []
    try:
        made.extend(results(steps, Variant))
    except KeyboardInterrupt:
        tell(kept_note(made, output))
        raise
    for variant in made:
        if as_json:
            print_json(variant.to_dict())
        else:
            print_line(
                f"{variant.path}: {variant.size_bytes / 1e6:,.1f} MB, logits within "
                f"{variant.parity:.1e} of PyTorch's"
            )


def kept_note(made: list[Variant], output: object) -> str:
    """What an interruption leaves."""
    names = ", ".join(variant.path.name for variant in made) or "nothing"
    return f"\nstopped; {names} is complete in {output}"
