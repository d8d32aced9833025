"""A connection to Ray: processes of this machine, or an existing cluster."""

import logging
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray

from fillmask_ui.errors import DataError, OptionError, first_line
from fillmask_ui.models.model_choice import cores

# Texts under way and finished rows, on this machine alone; a few hundred blocks.
_LOCAL_STORE_BYTES = 512 * 2**20
_HEALTH_SECONDS = 15.0


@dataclass(frozen=True)
class Cluster:
    """What an evaluation may use."""

    workers: int  # processes that hold the model
    threads: int  # of each
    local: bool  # whether it is this machine alone

    def to_dict(self) -> dict[str, Any]:
        size = {"workers": self.workers, "threads_per_worker": self.threads}
        return {"name": "ray", "version": ray.__version__, **size}


@contextmanager
def connect(address: str | None, workers: int | None, threads: int) -> Iterator[Cluster]:
    """Connect to a cluster or start one here; by default with a worker for each `threads` cores."""
    if ray.is_initialized():  # a process has one connection
        raise DataError(
            "another evaluation of this process runs on Ray: wait for its end, or stop it"
        )
    try:
        if address is None:
            _check_cores(workers or 1, threads, cores(), "this machine has")
        _join(address)
        have = int(ray.cluster_resources().get("CPU", 0)) if address else cores()
        workers = workers or max(1, have // threads)
        _check_cores(workers, threads, have, f"the cluster at {address} has")
        yield Cluster(workers, threads, address is None)
    finally:
        ray.shutdown()


def _check_cores(workers: int, threads: int, have: int, who: str) -> None:
    if workers * threads > have:
        raise OptionError(
            f"{workers} workers of {threads} thread{'s' * (threads > 1)} need {workers * threads} "
            f"cores, and {who} {have}: ask for fewer (--workers, --threads-per-worker)"
        )


def _join(address: str | None) -> None:
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if address is None:
        options |= {"address": "local", "num_cpus": cores(), "include_dashboard": False}
        options["object_store_memory"] = _LOCAL_STORE_BYTES
    else:
        _check_address(address)
        options["address"] = address
    try:
        with warnings.catch_warnings(), _quiet():
            warnings.simplefilter("ignore")
            ray.init(**options)
    except Exception as error:  # of many kinds, none of them documented
        where = f"at {address}" if address else "on this machine"
        raise DataError(
            f"Ray cannot be used {where}: {first_line(error)}. Is a cluster running there (ray "
            "status), of the same versions of Ray and Python as here?"
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Drop what Ray writes past Python: of its own logging; it raises what goes wrong."""
    sys.stderr.flush()
    before = os.dup(2)
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(before, 2)
        os.close(before)


def _check_address(address: str) -> None:
    """Refuse an address that is malformed or where no Ray answers: Ray itself would wait."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdecimal():
        raise OptionError(
            f"the address must be HOST:PORT, or auto for the cluster that this machine is part of; "
            f"it was {address!r}"
        )
    # In a process that can be ended: if something else listens, Ray waits for ever.
    command = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address]
    with suppress(subprocess.TimeoutExpired):
        done = subprocess.run(command, capture_output=True, timeout=_HEALTH_SECONDS, check=False)
        if done.returncode == 0:
            return
    raise DataError(
        f"no cluster of Ray {ray.__version__} answers at {address}: is it the port of its head "
        "(6379 by default), of the same version as here? Start one with ray start --head, or leave "
        "--address out to use this machine"
    )
