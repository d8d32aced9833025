"""How an exported graph is fed, and which of its outputs are the logits.

Exported files differ: int32 or int64, with or without token_type_ids and position_ids, one fixed
batch size or length. Axes: B texts, T tokens, V vocabulary.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fillmask_ui.errors import ModelError

ASKED = "asked_positions"  # the input of cut graphs, see `onnx_tools.gather`

# What the inputs are -> what exporters call them.
_ROLES = {
    "input_ids": ("input_ids", "input", "ids", "tokens"),
    "attention_mask": ("attention_mask", "input_mask", "mask"),
    "token_type_ids": ("token_type_ids", "segment_ids"),
    "position_ids": ("position_ids",),
}
_DTYPES: dict[str, Any] = {
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
}
# A model may be wider than its tokenizer, rounded up for speed (DeBERTa-v3: 128,001 tokens in
# 128,100 columns). More than that without a config.json that says so is another kind of output.
_ROUNDED_UP = 128


@dataclass(frozen=True)
class Feeds:
    """How to feed one graph."""

    roles: Mapping[str, str]  # name of each input in the graph -> what it is, as in the table above
    dtypes: Mapping[str, Any]  # name of each input -> numpy type that it wants
    batch: int | None  # its fixed B, None if any
    length: int | None  # its fixed T, None if any
    pad_id: int  # fills up texts
    first_position: int  # position id of a text's first token

    def arrays(self, input_ids: np.ndarray, attention_mask: np.ndarray) -> dict[str, np.ndarray]:
        """By input name [batch or B, length or T], of both int64 [B, T]."""
        rows, columns = input_ids.shape
        shape = (self.batch or rows, self.length or columns)
        ids = np.full(shape, self.pad_id, dtype=np.int64)
        mask = np.zeros(shape, dtype=np.int64)
        ids[:rows, :columns], mask[:rows, :columns] = input_ids, attention_mask
        # A row with nothing to attend to gives NaN: filler rows repeat the first text.
        ids[rows:], mask[rows:] = ids[0], mask[0]
        counted = np.cumsum(mask, axis=1)
        if self.first_position:
            # As create_position_ids_from_input_ids of RoBERTa: padding stays at the pad id.
            positions = counted * mask + self.first_position - 1
        else:
            positions = np.maximum(counted - 1, 0)
        values = dict(zip(_ROLES, (ids, mask, np.zeros_like(ids), positions), strict=True))
        return {name: values[role].astype(self.dtypes[name]) for name, role in self.roles.items()}


def plan_feeds(inputs: Sequence[Any], name: str, *, pad_id: int, first_position: int) -> Feeds:
    """Recognise the inputs of a graph, as `InferenceSession.get_inputs` lists them.

    A ModelError if it takes something else than tokens.
    """
    inputs = [one for one in inputs if one.name != ASKED]
    listed = ", ".join(one.name for one in inputs) or "none"
    roles: dict[str, str] = {}
    for one in inputs:
        called = one.name.split(":")[0].lower()
        role = next((role for role, names in _ROLES.items() if called in names), None)
        if role is None and len(inputs) == 1:
            role = "input_ids"
        if role is None or one.type not in _DTYPES or len(one.shape) not in (0, 2):
            raise ModelError(
                f"{name} is no masked language model that takes tokens alone: its input "
                f"{one.name} ({one.type}, shape {list(one.shape)}) is not known; wanted are "
                f"{', '.join(_ROLES)} of shape [batch, tokens]; it has: {listed}"
            )
        roles[one.name] = role
    ids = [one for one in inputs if roles[one.name] == "input_ids"]
    if len(ids) != 1:
        raise ModelError(f"{name} has no single input for token ids; it has: {listed}")
    shape = [*ids[0].shape, None, None]
    batch, length = (size if isinstance(size, int) and size > 0 else None for size in shape[:2])
    dtypes = {one.name: _DTYPES[one.type] for one in inputs}
    return Feeds(roles, dtypes, batch, length, pad_id, first_position)


def find_logits(
    outputs: Mapping[str, np.ndarray],
    shape: tuple[int, int],
    name: str,
    *,
    known: int,
    configured: int | None,
) -> str:
    """Name of the output of a probe [B, T] that is [B, T, V].

    `known` is V of the tokenizer, `configured` that of config.json, `name` the model's.
    """
    widths = {
        key: value.shape[2]
        for key, value in outputs.items()
        if value.ndim == 3 and value.shape[:2] == shape and value.dtype.kind == "f"
    }
    for wanted in (configured, known):
        fitting = [key for key, width in widths.items() if width == wanted]
        if fitting:
            return "logits" if "logits" in fitting else fitting[0]
    if configured is None:
        for key, width in widths.items():
            if "logits" in key and 0 <= width - known < _ROUNDED_UP:
                return key
    listed = ", ".join(f"{key} {list(own.shape)} of {own.dtype}" for key, own in outputs.items())
    raise ModelError(
        f"{name} is no masked language model that goes with this tokenizer: no output of floats "
        f"is {list(shape)} x {known:,} tokens, but: {listed}. Export the model with its masked-LM "
        "head (task fill-mask), or name the tokenizer that belongs to it"
    )
