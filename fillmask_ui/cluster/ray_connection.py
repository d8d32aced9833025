"""A connection to Ray: processes of this machine, or a cluster that is there already."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import ray

from fillmask_ui.cluster.engine_choice import EngineChoice
from fillmask_ui.errors import DataError, OptionError, first_line
from fillmask_ui.models.runtime_model import cores

# Texts under way and finished rows, on this machine alone; a few hundred blocks.
_LOCAL_STORE_BYTES = 512 * 2**20
_ANSWER_SECONDS = 5.0
_HEALTH_SECONDS = 15.0
# A process has one connection.
_CONNECTED = threading.Lock()


@dataclass(frozen=True)
class Cluster:
    """What an evaluation may use."""

    workers: int  # processes that hold the model
    threads: int  # of each
    version: str  # of Ray
    local: bool  # whether it is this machine alone

    def to_dict(self) -> dict[str, Any]:
        """An entry of `RunInfo.engines`."""
        own = {"workers": self.workers, "threads_per_worker": self.threads}
        return {"name": "ray", "version": self.version, **own}


@contextmanager
def connect(choice: EngineChoice) -> Iterator[Cluster]:
    """Connect to a cluster or start one here; behind the block it is as before.

    Raises:
        OptionError: if more is asked for than there is, or the address is malformed.
        DataError: if nobody answers, or not as this version of Ray does.
    """
    if not _CONNECTED.acquire(blocking=False):
        raise DataError(
            "another evaluation of this process runs on Ray: wait for its end, or stop it"
        )
    try:
        here = choice.address is None
        cluster = _cluster(choice, cores(), "this machine has") if here else None
        _join(choice)
        have = int(ray.cluster_resources().get("CPU", 0))
        yield cluster or _cluster(choice, have, f"the cluster at {choice.address} has")
    finally:
        ray.shutdown()
        _CONNECTED.release()


def _cluster(choice: EngineChoice, have: int, who: str) -> Cluster:
    """What is used of so many cores."""
    threads = choice.threads_per_worker or 1
    workers = choice.workers or max(1, have // threads)
    if workers * threads > have:
        raise OptionError(
            f"{workers} workers of {threads} thread{'s' * (threads > 1)} need {workers * threads} "
            f"cores, and {who} {have}: ask for fewer (--workers, --threads-per-worker)"
        )
    return Cluster(workers, threads, ray.__version__, choice.address is None)


def _join(choice: EngineChoice) -> None:
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if choice.address is None:
        options |= {"address": "local", "num_cpus": cores(), "include_dashboard": False}
        options["object_store_memory"] = _LOCAL_STORE_BYTES
    else:
        _check_address(choice.address)
        options["address"] = choice.address
    try:
        with warnings.catch_warnings(), _interrupted_later(), _without_remarks():
            warnings.simplefilter("ignore")
            ray.init(**options)
    except Exception as error:  # of many kinds, none of them documented
        where = "on this machine" if choice.address is None else f"at {choice.address}"
        raise DataError(
            f"Ray cannot be used {where}: {first_line(error)}. Is a cluster running there (ray "
            "status), of the same versions of Ray and Python as here?"
        ) from error


@contextmanager
def _without_remarks() -> Iterator[None]:
    """Drop what Ray writes of its own logging past Python; all else comes out at the end."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as caught:
        before = os.dup(2)
        os.dup2(caught.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(before, 2)
            os.close(before)
            caught.seek(0)
            for line in caught:
                if b"Set ray log level" not in line:
                    os.write(2, line)


@contextmanager
def _interrupted_later() -> Iterator[None]:
    """Ctrl-C waits for the end of the block: in the midst of its start Ray dies of it (2.60)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: asked.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if asked.is_set():
        raise KeyboardInterrupt


def _check_address(address: str) -> None:
    """Refuse an address that is malformed or where no Ray answers: Ray itself would wait."""
    if address == "auto":
        return
    host, colon, port = address.rpartition(":")
    if "://" in address or not colon or not port.isdecimal():
        raise OptionError(
            f"the address must be HOST:PORT, or auto for the cluster that this machine is part of; "
            f"it was {address!r}"
        )
    try:
        socket.create_connection((host, int(port)), _ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(
            f"no cluster answers at {address} ({reason}): start one with ray start --head, or "
            "leave --address out to use this machine"
        ) from error
    # In a process that can be ended: of something else that listens, Ray waits for ever.
    command = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address]
    with suppress(subprocess.TimeoutExpired):
        done = subprocess.run(command, capture_output=True, timeout=_HEALTH_SECONDS, check=False)
        if done.returncode == 0:
            return
    raise DataError(
        f"what answers at {address} is no cluster of Ray {ray.__version__}, or not in order: is it "
        "the port of its head (6379 by default), of the same version as here?"
    )
