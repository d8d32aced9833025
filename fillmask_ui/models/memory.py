"""What memory there is, and what a model would take of it, before anything is built."""

from __future__ import annotations

import os
import re
from pathlib import Path

from fillmask_ui.errors import ModelError

_MEMINFO = Path("/proc/meminfo")
# Bytes; the tokenizer.json of a vocabulary of 250,000 words has 17 MB.
_LONGEST_TEXT = 300_000_000
_POINTER = b"version https://git-lfs.github.com/spec/"

# Of a container, by cgroup v2 and v1: its limit, what it uses of it, and what that is.
_GROUPS = tuple(
    tuple(Path(folder) / name for name in names)
    for folder, names in (
        ("/sys/fs/cgroup", ("memory.max", "memory.current", "memory.stat")),
        (
            "/sys/fs/cgroup/memory",
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat"),
        ),
    )
)


def available_bytes() -> int | None:
    """Memory that can be used without swapping, as Linux tells it; elsewhere None.

    In a container not more than its limit leaves.
    """
    found = re.search(r"^MemAvailable:\s*(\d+) kB", _text(_MEMINFO), re.MULTILINE)
    rooms = [int(found[1]) << 10] if found else []
    for limit, used, parts in _GROUPS:
        most, now = _text(limit).strip(), _text(used).strip()
        if most.isdecimal() and now.isdecimal():  # a limit may be the word `max`
            # Pages of files count as used, and are given up first.
            files = re.findall(r"^(?:in)?active_file (\d+)", _text(parts), re.MULTILINE)
            rooms.append(int(most) - int(now) + sum(map(int, files)))
    return min(rooms, default=None)


def check_fits(name: str, wanted_bytes: float, purpose: str) -> None:
    """Stop with a ModelError where a model takes more memory than there is."""
    available = available_bytes()
    if available is not None and wanted_bytes > available:
        raise ModelError(
            f"{name} needs about {wanted_bytes / 1e9:,.1f} GB of memory {purpose}, and "
            f"{available / 1e9:,.1f} GB are free: close other programs, take a smaller model, or a "
            "machine with more"
        )


def check_is_file(path: Path) -> None:
    """Stop with a ModelError where something has the name of a file and is none."""
    if os.path.lexists(path) and not path.is_file():
        raise ModelError(
            f"{path} is no file (but a folder, a pipe, a device, or a link that leads nowhere): "
            "put the file of this name there"
        )


def check_no_pointer(path: Path) -> None:
    """Stop with a ModelError where git-LFS left the three lines that stand for a large file."""
    with path.open("rb") as file:
        if file.read(len(_POINTER)) == _POINTER:
            raise ModelError(
                f"{path} is a git-LFS pointer, which stands for the file: run `git lfs pull` in "
                "its repository, or fetch the file again"
            )


def check_readable(path: Path) -> None:
    """Stop with a ModelError for a text file of a model that is none, or too long to be one."""
    # A tokenizer's file may have any name that ends with `.model`, as a folder may, too.
    if path.suffix in (".json", ".txt") or not path.is_dir():
        check_is_file(path)
    if not path.is_file():
        return
    check_no_pointer(path)
    if (size := path.stat().st_size) > _LONGEST_TEXT:
        raise ModelError(
            f"{path} has {size / 1e6:,.0f} MB, and {_LONGEST_TEXT / 1e6:,.0f} MB are the most that "
            "is read of such a file: it is damaged or something else; fetch it again"
        )


def _text(path: Path) -> str:
    """What a file of the kernel says; nothing where it is not there."""
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""
