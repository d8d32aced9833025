"""What `config.json` says about a model, as far as it matters here."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fillmask_ui.errors import ModelError, opening

# Architectures that count positions from pad_token_id + 1, so that many rows of the position
# table are never reached: RoBERTa's 514 rows serve 512 tokens.
_POSITIONS_AFTER_PAD = re.compile(
    r"camembert|data2vec-text|esm|ibert|longformer|luke|mpnet|xmod"
    r"|roberta|roberta-prelayernorm|xlm-roberta|xlm-roberta-xl"
)
# Endings of the class names of other models, and what these do.
_OTHER_TASKS = {
    "ForCausalLM": "which predicts the next token",
    "LMHeadModel": "which predicts the next token",
    "ForConditionalGeneration": "an encoder-decoder, which writes new text",
}


@dataclass(frozen=True)
class ModelConfig:
    """The part of a Hugging Face `config.json` that this project uses."""

    raw: dict[str, Any] = field(default_factory=dict)  # the whole file; empty if there is none

    def _count(self, key: str, least: int) -> int | None:
        value = self.raw.get(key)
        return value if isinstance(value, int) and value >= least else None

    @property
    def model_type(self) -> str:
        return str(self.raw.get("model_type") or "unknown")

    @property
    def architectures(self) -> tuple[str, ...]:
        names = self.raw.get("architectures")
        return tuple(map(str, names)) if isinstance(names, list) else ()

    @property
    def is_masked_lm(self) -> bool:
        return any(name.endswith("ForMaskedLM") for name in self.architectures)

    @property
    def vocabulary_size(self) -> int | None:
        return self._count("vocab_size", 1)

    @property
    def first_position(self) -> int:
        """Position id of the first token of a text."""
        if not _POSITIONS_AFTER_PAD.fullmatch(self.model_type):
            return 0
        pad = self._count("pad_token_id", 0)
        return (1 if pad is None else pad) + 1  # 1 is the default of all these architectures

    @property
    def usable_positions(self) -> int | None:
        """Longest text in tokens that the position table serves; None if none is named."""
        rows = self._count("max_position_embeddings", self.first_position + 1)
        return None if rows is None else rows - self.first_position

    def refuse_other_tasks(self, name: str) -> None:
        """A ModelError for a model that was made for another task than filling masks."""
        for own in () if self.is_masked_lm else self.architectures:
            other = next(filter(own.endswith, _OTHER_TASKS), None)
            if other and "WithLMHead" not in own:
                raise ModelError(
                    f"{name} is not a masked language model: its config.json says {own}, "
                    f"{_OTHER_TASKS[other]}; choose a model for fill-mask (...ForMaskedLM)"
                )


def read_config(*folders: Path) -> ModelConfig:
    """The first `config.json` in the folders; empty if none has one."""
    path = next(filter(Path.is_file, (folder / "config.json" for folder in folders)), None)
    if path is None:
        return ModelConfig()
    with opening("a model", path):
        return ModelConfig(dict(json.loads(path.read_bytes())))
