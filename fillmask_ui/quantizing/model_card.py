"""Model cards: Markdown made of records and measurements, so that a card claims only what was seen.

`templates/variants.md` describes a folder of variants, `templates/trained.md` a trained model.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCard, ModelCardData

from fillmask_ui.errors import FillmaskError
from fillmask_ui.models.model_choice import parse_reference

_TEMPLATES = Path(__file__).parent / "templates"


def trained_card(content: Mapping[str, Any]) -> str:
    """The card of a trained model, whose `notes` bring the header that the hub reads."""
    template = str(_TEMPLATES / "trained.md")
    return ModelCard.from_template(ModelCardData(), template, **content).text + "\n"


def variants_card(name: str, record: Mapping[str, Any]) -> str:
    """The card of a folder of variants, of its record alone."""
    sources = list(record["sources"].values())
    hub = next((source["hub_id"] for source in sources if source["hub_id"]), None)
    data = ModelCardData(
        library_name="transformers",
        pipeline_tag="fill-mask",
        tags=["fill-mask", "onnx"],
        base_model=hub,
        base_model_relation="quantized" if hub else None,
    )
    content: dict[str, Any] = {"name": name, "sources": sources, "files": record["files"]}
    return f"{ModelCard.from_template(data, str(_TEMPLATES / 'variants.md'), **content)}\n"


def command(*words: str, **options: Any) -> str:
    """A command of fillmask-ui that repeats what was done.

    An option is left out for None and False, bare for True, and repeated for each of a list.

    >>> command("quantize", "bert", output="out", exclude=["layer:0", "layer:1"], force=True)
    'fillmask-ui quantize bert --output out --exclude layer:0 --exclude layer:1 --force'
    """
    line = ["fillmask-ui", *words]
    for name, given in options.items():
        flag = f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"
        for value in given if isinstance(given, list | tuple) else [given]:
            if value is True:
                line.append(flag)
            elif value is not None and value is not False:
                line += [flag, f"{value:g}" if isinstance(value, float) else str(value)]
    return shlex.join(line)


def plain_reference(text: str) -> str:
    """A folder by its name, an id of the hub whole.

    >>> plain_reference("google-bert/bert-base-uncased@v1"), plain_reference("/nowhere/run/")
    ('google-bert/bert-base-uncased@v1', 'run')
    """
    try:
        path = parse_reference(text).path
    except FillmaskError:  # a folder of another machine or of another time
        path = Path(text)
    return text if path is None else path.absolute().name
