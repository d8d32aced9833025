"""What is worth keeping from one start to the next, in the user's cache folder.

An entry is one file, put in place whole and with its own hash: a torn one counts as missing. If
the folder cannot be written nothing is kept.
"""

import contextlib
import hashlib
from pathlib import Path

from fillmask_ui.errors import DataError
from fillmask_ui.files import finished_file, user_folder


def read_entry(kind: str, *key: str) -> bytes | None:
    """What was kept of a kind under a key; None if there is nothing whole."""
    try:
        stored = _path(kind, key).read_bytes()
    except (OSError, DataError):
        return None
    digest, content = stored[:32], stored[32:]
    return content if hashlib.sha256(content).digest() == digest else None


def write_entry(content: bytes, kind: str, *key: str) -> None:
    """Keep something, if that is possible."""
    with contextlib.suppress(OSError, DataError):
        path = _path(kind, key)
        path.parent.mkdir(parents=True, exist_ok=True)
        with finished_file(path) as draft:
            draft.write_bytes(hashlib.sha256(content).digest() + content)


def _path(kind: str, key: tuple[str, ...]) -> Path:
    name = hashlib.sha256("\0".join(key).encode()).hexdigest()[:32]
    return user_folder("cache") / kind / name
