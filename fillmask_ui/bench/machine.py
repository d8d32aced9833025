"""What a speed depends on beside the program: processor, system, versions. No name of the host."""

from __future__ import annotations

import platform
import re
from importlib import metadata
from pathlib import Path
from typing import Any

from fillmask_ui import __version__
from fillmask_ui.models.runtime_model import cores

_CPUINFO = Path("/proc/cpuinfo")
_PACKAGES = ("onnxruntime", "numpy", "torch", "transformers")


def machine() -> dict[str, Any]:
    """CPU, the cores that this process may use, system, Python and the versions of libraries."""
    return {
        "cpu": _cpu(),
        "cores": cores(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {"fillmask-ui": __version__, **_versions()},
    }


def _cpu() -> str:
    text = _CPUINFO.read_text("utf-8", "replace") if _CPUINFO.is_file() else ""
    line = re.search(r"^model name\s*:\s*(.+)", text, re.MULTILINE)
    return line[1].strip() if line else platform.processor() or platform.machine() or "unknown"


def _versions() -> dict[str, str]:
    installed = {own.name: own.version for own in metadata.distributions()}
    return {package: installed[package] for package in _PACKAGES if package in installed}
