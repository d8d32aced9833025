"""Where a run was measured, and how fast it is being measured, in words."""

from collections.abc import Iterable, Mapping
from typing import Any

from fillmask_ui.runs import RunInfo
from fillmask_ui.show.numbers import three_digits

Engines = Iterable[Mapping[str, Any]]  # `RunInfo.engines`
_NAMES = {"ray": "Ray"}


def engines_text(engines: Engines) -> str:
    """The engines of a run for reading; blank for a run of before, which does not say.

    >>> ray = {"name": "ray", "version": "2.60.0", "workers": 4, "threads_per_worker": 1}
    >>> engines_text([{"name": "local"}, ray])
    'local; Ray 2.60.0, 4 workers of 1 thread'
    """
    return "; ".join(map(_engine_text, engines))


def _engine_text(engine: Mapping[str, Any]) -> str:
    text = " ".join(filter(None, (_name(engine), engine.get("version"))))
    if workers := engine.get("workers"):
        text += f", {_counted(workers, 'worker')}"
        if threads := engine.get("threads_per_worker"):
            text += f" of {_counted(threads, 'thread')}"
    return text


def engine_names(engines: Engines) -> str:
    """The same without details, each engine once.

    >>> engine_names([{"name": "ray", "workers": 2}, {"name": "local"}, {"name": "ray"}])
    'Ray, local'
    """
    return ", ".join(dict.fromkeys(map(_name, engines)))


def speed_text(info: RunInfo | None, workers: int, tokens_per_second: float | None) -> str:
    """How fast a run goes, and by how many workers unless it is this process alone.

    >>> speed_text(None, 1, 1234.5), speed_text(None, 2, None)
    ('1,234 tokens/s', '2 workers')
    """
    speed = f"{three_digits(tokens_per_second)} tokens/s" if tokens_per_second else ""
    elsewhere = info is not None and info.engines and info.engines[-1]["name"] != "local"
    by = _counted(workers, "worker") if elsewhere or workers > 1 else ""
    by = by if workers else "workers are starting"
    return ", ".join(filter(None, (speed, by)))


def _name(engine: Mapping[str, Any]) -> str:
    return _NAMES.get(engine["name"], engine["name"])


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"
