"""Whether config.json asks for the model that its weights are, before anything is built of it.

transformers builds what config.json says and only then looks at the weights: a million layers take
minutes, a vocabulary of a thousand million words all memory.
"""

from dataclasses import dataclass
from typing import Any

from fillmask_ui.errors import ModelError
from fillmask_ui.models.configuration import ModelConfig
from fillmask_ui.models.memory import check_fits

# What architectures call the same numbers.
_LAYERS = ("num_hidden_layers", "n_layers", "n_layer", "num_layers", "encoder_layers")
_WIDTHS = ("hidden_size", "dim", "d_model", "emb_dim")
_OTHERS = (
    *("vocab_size", "embedding_size", "intermediate_size", "hidden_dim", "d_inner", "ffn_dim"),
    *("max_position_embeddings", "type_vocab_size", "num_attention_heads", "n_heads"),
    *("num_hidden_groups", "inner_group_num", "num_key_value_heads", "head_dim"),
)

_DIVISORS = ("num_attention_heads", "n_heads", "num_key_value_heads")

# Layers may share their weights (ALBERT), and tables of positions may be computed: up to these
# numbers, whatever the weights are.
_SHARED_LAYERS = 1_000
_COMPUTED_ROWS = 1_000_000

# Weights may be packed, up to eight numbers in one.
_PACKED = 8


@dataclass(frozen=True)
class StoredSize:
    """What files of weights hold, by their headers."""

    tensors: int
    numbers: int  # of all tensors


def check_sizes(name: str, config: ModelConfig, stored: StoredSize) -> None:
    """Stop for a config that asks for another model than the weights, or for more than memory.

    Args:
        name: of the model.
        config: of it.
        stored: of its weights.

    Raises:
        ModelError: for a size that is no positive number or that the weights cannot have, and where
            they do not fit into memory in float32.
    """
    raw, most = config.raw, max(_COMPUTED_ROWS, _PACKED * stored.numbers)
    for key in (*_WIDTHS, *_OTHERS):
        _check(name, key, raw.get(key), most, f"{stored.numbers:,} numbers")
    limit = max(_SHARED_LAYERS, stored.tensors)
    for key in _LAYERS:
        _check(name, key, raw.get(key), limit, f"{stored.tensors:,} tensors")
    for key in _DIVISORS:
        if raw.get(key) == 0:
            raise ModelError(f"config.json of {name} says {key} 0; at least 1 is wanted")
    wanted = _least_weights(raw)
    if wanted > _PACKED * stored.numbers:
        raise ModelError(
            f"config.json of {name} asks for {wanted:,} weights or more, and its files hold "
            f"{stored.numbers:,}: they do not belong together; fetch both from one place"
        )
    check_fits(name, 4 * stored.numbers, "in float32")


def check_new_sizes(name: str, raw: dict[str, Any]) -> None:
    """`check_sizes` of a model that is to be trained from nothing, by its config alone."""
    for key in _LAYERS:
        if isinstance(layers := raw.get(key), int) and layers > _SHARED_LAYERS:
            raise ModelError(f"{name} says {key} {layers:,}; {_SHARED_LAYERS:,} is the most")
    # Weights, their gradients, and the two moments of the optimizer.
    check_fits(name, 16 * _least_weights(raw), "to be trained")


def _least_weights(raw: dict[str, Any]) -> int:
    """At the least, each word has a vector and each layer one square matrix."""
    width = _first(raw, _WIDTHS)
    layers = 1 if "num_hidden_groups" in raw else _first(raw, _LAYERS)
    vectors = _first(raw, ("vocab_size",)) * (_first(raw, ("embedding_size",)) or width)
    return vectors + layers * width**2


def _check(name: str, key: str, value: Any, most: int, held: str) -> None:
    if value is None:
        return
    if isinstance(value, list) and all(isinstance(one, int) for one in value):  # layer by layer
        value = max(value, default=0)
    if not isinstance(value, int) or not 0 <= value <= most:
        said = repr(value) if len(repr(value)) < 40 else f"{repr(value)[:30]}..."
        raise ModelError(
            f"config.json of {name} says {key} {said}; the weights have {held} in all, so "
            f"a whole number from 0 to {most:,} is wanted: fetch config.json and weights from one "
            "place"
        )


def _first(raw: dict[str, Any], names: tuple[str, ...]) -> int:
    """The first of the names that says a number, 0 where none does."""
    return next((own for own in map(raw.get, names) if isinstance(own, int)), 0)
