"""What ONNX Runtime says where it fails, in words for users."""

import re

import numpy as np

from fillmask_ui.errors import ModelError, ModelOutputError, first_line

# Of two arrays that do not fit, as "512 by 704".
_SIDES = re.compile(r"\b(\d+) by (\d+)$")
# File, line and signature of a function, as `/src/graph.cc:12 bool Graph::find(int) const`.
_SOURCE = re.compile(r"/\S+\.(?:cc|cpp|h):\d+ [^()]*\w\([^()]*\)(?: const)? ?")


def reason(error: Exception) -> str:
    """First line of ONNX Runtime's message, without its code and where in its sources it arose.

    >>> reason(ValueError("[Error] : 1 : FAIL : a failed:/src/g.cc:1 void g::f(int) no such node"))
    'a failed: no such node'
    """
    said = first_line(error, 10_000).split(" : ")[-1]
    return _SOURCE.sub(" ", said).strip()[:300]


def failed(name: str, texts: tuple[int, ...], error: Exception) -> ModelError:
    """What to say of a call that failed, on token ids of a shape [B, T]."""
    said, hint = reason(error), ""
    sides = _SIDES.search(said)
    if sides and (least := min(map(int, sides.groups()))) < texts[1] in map(int, sides.groups()):
        hint = f"; its graph takes {least:,} tokens at most, whatever its config.json says"
    shape = " x ".join(map(str, texts))
    return ModelError(f"{name} failed on {shape} tokens: {said}{hint}")


def too_few_logits(name: str, texts: tuple[int, ...], logits: tuple[int, ...]) -> ModelOutputError:
    """What to say of a graph that cuts texts, given the shapes of both."""
    return ModelOutputError(
        f"{name} gives logits {list(logits)} for texts {list(texts)}, none for some tokens: export "
        "it with a dynamic length"
    )


def refuse_unusable(name: str, logits: np.ndarray) -> None:
    """A `ModelOutputError` for logits [T, V] of a plain text that are none."""
    if np.isnan(logits).any():
        raise ModelOutputError(
            f"{name} returns NaN on a plain probe text: its weights are damaged or overflow their "
            "precision; use the full-precision file or fetch it again"
        )
    if logits.min() >= 0 and np.allclose(logits.sum(axis=1, dtype=np.float64), 1, atol=1e-2):
        raise ModelOutputError(
            f"{name} returns probabilities, and logits are wanted: export it without the softmax "
            "at its end"
        )
