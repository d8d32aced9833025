"""What ONNX Runtime says where it fails, in words for users."""

import re

from fillmask_ui.errors import NO_MEMORY, ModelOutputError, first_line, is_out_of_memory

# File, line and signature of a function, as `/src/graph.cc:12 bool Graph::find(int) const`.
_SOURCE = re.compile(r"/\S+\.(?:cc|cpp|h):\d+ [^()]*\w\([^()]*\)(?: const)? ?")


def reason(error: Exception) -> str:
    """First line of ONNX Runtime's message, without its code and where in its sources it arose.

    >>> reason(ValueError("[Error] : 1 : FAIL : a failed:/src/g.cc:1 void g::f(int) no such node"))
    'a failed: no such node'
    >>> reason(RuntimeError("[Error] : 6 : Exception during initialization: std::bad_alloc"))
    'there is not enough memory: end other programs, ...'
    """
    if is_out_of_memory(error):
        return NO_MEMORY
    said = first_line(error, 10_000).split(" : ")[-1]
    return _SOURCE.sub(" ", said).strip()[:300]


def too_few_logits(name: str, texts: tuple[int, ...], logits: tuple[int, ...]) -> ModelOutputError:
    """What to say of a graph that cuts texts, given the shapes of both."""
    return ModelOutputError(
        f"{name} gives logits {list(logits)} for texts {list(texts)}, none for some tokens: export "
        "it with a dynamic length"
    )
