"""What an attempt is: something hostile to make, a command, and how it has to end."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Attempt:
    """One hostile command line."""

    name: str  # unique, in words
    # arguments of `fillmask-ui`; `{}` is the folder of the test, `{model}` a tiny model's folder
    arguments: tuple[str, ...]
    # words of the message, or of standard output where nothing is wrong; any case
    words: tuple[str, ...]
    code: int = 1  # wanted exit code: 0 done, 1 a failure outside the input, 2 wrong input
    # makes what is hostile: called with the folder of the test, and that of a tiny model to copy
    make: Callable[[Path, Path], object] = lambda folder, model: None
    environment: dict[str, str] = field(default_factory=dict)  # variables, `{}` as in arguments
    stdin: bytes | None = None
    absent: str = ""  # what must not be in the folder of the test at the end
