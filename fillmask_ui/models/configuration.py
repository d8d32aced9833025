"""What `config.json` says about a model, as far as it matters here."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fillmask_ui.errors import ModelError
from fillmask_ui.json_text import read_object
from fillmask_ui.models.memory import check_readable

# Architectures that count positions from pad_token_id + 1, so that many rows of the position
# table are never reached: RoBERTa's 514 rows serve 512 tokens.
_POSITIONS_AFTER_PAD = re.compile(
    r"camembert|data2vec-text|esm|ibert|longformer|luke|mpnet|xmod"
    r"|roberta|roberta-prelayernorm|xlm-roberta|xlm-roberta-xl"
)

# Endings of class names that predict the next token, not a hidden one.
_NOT_MASKED = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")

_MOST_LABELS = 1_000_000


@dataclass(frozen=True)
class ModelConfig:
    """The part of a Hugging Face `config.json` that this project uses."""

    raw: dict[str, Any] = field(default_factory=dict)  # the whole file; empty where there is none

    @property
    def model_type(self) -> str:
        return str(self.raw.get("model_type") or "unknown")

    @property
    def architectures(self) -> tuple[str, ...]:
        names = self.raw.get("architectures")
        is_known = isinstance(names, list) and all(isinstance(name, str) for name in names)
        return tuple(names or ()) if is_known else ()

    @property
    def is_masked_lm(self) -> bool:
        return any(name.endswith("ForMaskedLM") for name in self.architectures)

    @property
    def vocabulary_size(self) -> int | None:
        size = self.raw.get("vocab_size")
        return size if isinstance(size, int) and size > 0 else None

    @property
    def first_position(self) -> int:
        """Position id of the first token of a text."""
        if not _POSITIONS_AFTER_PAD.fullmatch(self.model_type):
            return 0
        pad = self.raw.get("pad_token_id")
        # These architectures all default to 1 where the file leaves it out.
        return (pad if isinstance(pad, int) and pad >= 0 else 1) + 1

    @property
    def usable_positions(self) -> int | None:
        """Longest text in tokens that the position table serves; None where none is named.

        >>> ModelConfig(
        ...     {"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1}
        ... ).usable_positions
        512
        """
        rows = self.raw.get("max_position_embeddings")
        if not isinstance(rows, int) or rows <= self.first_position:
            return None
        return rows - self.first_position

    def refuse_other_tasks(self, name: str) -> None:
        """Stop here for a model that predicts the next token, with a ModelError."""
        other = [c for c in self.architectures if c.endswith(_NOT_MASKED) and "WithLMHead" not in c]
        if other and not self.is_masked_lm:
            raise ModelError(
                f"{name} is no masked language model: its config.json says {', '.join(other)}, "
                "which predicts the next token; choose a model for fill-mask (...ForMaskedLM)"
            )


def read_config(*folders: Path) -> ModelConfig:
    """The first `config.json` in the folders; empty where none has one, else a JSON object."""
    places = [folder / "config.json" for folder in folders]
    for place in places:
        check_readable(place)
    path = next(filter(Path.is_file, places), None)
    if path is None:
        return ModelConfig()
    try:
        config = ModelConfig(read_object(path))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read as JSON: {error}") from error
    # transformers makes a list of so many names, whatever else it reads of the folder.
    labels = config.raw.get("num_labels")
    if isinstance(labels, int) and labels > _MOST_LABELS:
        raise ModelError(f"{path} says num_labels {labels:,}; {_MOST_LABELS:,} is the most")
    return config
