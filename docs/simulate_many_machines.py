"""10^9 texts on 1,000 workers, simulated: time, memory, bytes and cost, and what breaks first.

    python docs/simulate_many_machines.py
    python docs/simulate_many_machines.py --texts 1e8 --workers 300 --slow-share 0.1
    python docs/simulate_many_machines.py --measure texts.txt.gz > docs/many-machines.json

Prints the tables of `docs/many-machines.md`. What was measured comes from `many-machines.json`
(`measure_many_machines.py` makes it), what is assumed are the options, the rest is computed here.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass, field, fields, replace
from heapq import heappop, heappush
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

INPUTS = Path(__file__).parent / "many-machines.json"
BLOCK_TEXTS = 512  # `fillmask_ui/evaluation/measure.py`


@dataclass(frozen=True)
class Measured:
    """What `measure_many_machines.py` found; seconds are of one thread."""

    text_bytes: float  # UTF-8, mean
    log_mean: float  # of the lognormal distribution of these bytes
    log_deviation: float
    variation_in_order: float  # standard deviation / mean of the work of blocks, as the files lie
    variation_shuffled: float  # the same of shuffled texts
    tokens_a_text: float  # that the model reads
    hidden_tokens_a_text: float  # that it is asked about
    text_seconds: float  # of a text in `evaluate`, embedded model
    rows_seconds: float  # of a text, to sum its row up and write it as JSON
    base_operations: float  # of BERT-base, by those of the embedded model, on the same texts
    merge_seconds: float  # of the driver, to unpickle and merge the sums of a block
    append_seconds: float  # of the driver, to append and flush the rows of a block
    partial_bytes: float  # sums of a block, pickled
    compressed_bytes: float  # the same, compressed by zlib
    whole_bytes: float  # sums in which each word of the vocabulary occurs, pickled
    row_bytes: float  # line of rows.jsonl
    kept_bytes: float  # that `RunningSummary` keeps of each text
    summary_bytes: float  # more that `summary()` takes of each text at its peak
    summary_seconds: float  # of each text
    unit_bytes: float  # of each block, in the sets of those that were begun and delivered
    stored_bytes: float  # that `Recorder` keeps of each row found on disk
    resume_seconds: float  # of each row found on disk
    gzip_bytes: float  # of a row, rows.jsonl compressed
    parquet_bytes: float  # of a row, parquet with zstd
    parquet_seconds: float  # to write it
    read_seconds: float  # of a text in a read task, as the file lies
    shuffle_seconds: float  # of a text, before the first shuffled one comes
    shuffled_read_seconds: float  # of a text, from then on
    load_seconds: float  # of a new process until it holds the embedded model
    model_bytes: float  # files of the embedded model


def given(default: float, meaning: str) -> Any:
    """A field that is an option of the command line."""
    return field(default=default, metadata={"help": meaning})


@dataclass(frozen=True)
class Plan:
    """The size of the work, and what is assumed."""

    texts: int = given(10**9, "texts")
    workers: int = given(1000, "processes with one thread and one core each")
    workers_per_machine: int = given(16, "of them on one machine")
    seed: int = given(42, "of the simulation")
    slow_share: float = given(0.02, "share of slow workers")
    slow_speed: float = given(1 / 3, "their speed")
    stall_share: float = given(0.001, "share of blocks that take much longer, by chance")
    stall_factor: float = given(10.0, "how many times as long")
    mtbf_hours: float = given(200.0, "of a worker, mean time between its deaths")
    restart_seconds: float = given(30.0, "until a dead worker is noticed and started again")
    gbit: float = given(10.0, "network of each machine, Gbit/s")
    disk_mb: float = given(500.0, "the driver's disk, MB/s written")
    storage_mb: float = given(2000.0, "shared storage, MB/s read by all machines together")
    ray_seconds: float = given(0.002, "that Ray and progress take on the driver for each block")
    price: float = given(0.04, "of a core for an hour, any currency")
    base_bytes: float = given(438e6, "files of a BERT-base, 109.5 million weights in float32")
    combine: int = given(32, "blocks that a worker sums up before it sends, where that is tried")


@dataclass(frozen=True)
class Case:
    """One simulated run."""

    blocks: int
    workers: int
    block_seconds: float  # mean, at full speed
    variation: float = 0.0  # standard deviation / mean of it
    driver_seconds: float = 0.0  # that the driver takes for each block, one after another
    read_seconds: float = 0.0  # between two blocks of the read tasks
    start_seconds: float = 0.0  # until workers have the model
    slow_workers: int = 0
    slow_speed: float = 1.0
    stall_share: float = 0.0
    stall_factor: float = 1.0
    mtbf_seconds: float = math.inf
    restart_seconds: float = 0.0
    in_flight: int = 1  # blocks that a worker is given at a time, 1 or 2; the second one waits
    copies: bool = (
        False  # idle workers repeat the block given out longest ago; the first one counts
    )
    seed: int = 42


@dataclass(frozen=True)
class Outcome:
    """What became of it; seconds since the start."""

    seconds: float  # last block merged
    idle_seconds: float  # first worker that found no block left
    driver_seconds: float  # that the driver worked
    deaths: int


def bundles(blocks: int, workers: int, parts: int) -> list[int]:
    """Sizes of what is simulated as one event: ever smaller, at last single blocks.

    A bundle is one of so many parts of a worker's share of what is left: with enough of them, that
    of a slow worker ends long before the run, whose end is simulated block by block.

    >>> bundles(20, 2, parts=2)
    [5, 3, 3, 2, 1, 1, 1, 1, 1, 1, 1]
    """
    sizes = []
    while blocks:
        sizes.append(max(1, blocks // (parts * workers)))
        blocks -= sizes[-1]
    return sizes


def queue_end(begun: np.ndarray, ended: np.ndarray, sizes: np.ndarray, each: float) -> float:
    """When one server, at `each` seconds a block, is through with all bundles.

    The blocks of a bundle come one after another while it is under way, in at most 32 lots. From a
    lot on the server needs at least the time of all that come no earlier, and it ends when the
    largest of these sums says so.

    Source:
        Lindley 1952, The theory of queues with a single server, unrolled.

    >>> queue_end(np.array([0.0, 0.0]), np.array([10.0, 11.0]), np.array([1, 1]), 3.0)
    16.0
    """
    lots = np.minimum(sizes, 32)
    bundle = np.repeat(np.arange(len(sizes)), lots)
    place = np.arange(len(bundle)) - np.repeat(np.cumsum(lots) - lots, lots) + 1
    come = begun[bundle] + (ended - begun)[bundle] * place / lots[bundle]
    order = np.argsort(come)
    left = np.cumsum((sizes / lots)[bundle][order][::-1])[::-1]  # blocks from this lot on
    return float((come[order] + left * each).max())


def simulate(case: Case) -> Outcome:
    """Workers take blocks as they become free; finished ones queue at the driver."""
    rng = np.random.default_rng(case.seed)
    sizes = np.array(
        bundles(case.blocks, case.workers, math.ceil(2 * case.in_flight / case.slow_speed))
    )
    work = case.block_seconds * sizes.astype(float)
    if case.variation:  # a sum of n gamma variables of one scale is gamma, too
        scale = case.variation**2
        work = rng.gamma(sizes / scale, case.block_seconds * scale)
    stalls = rng.binomial(sizes, case.stall_share) * (case.stall_factor - 1) * case.block_seconds
    ready = (np.cumsum(sizes) * case.read_seconds).tolist()
    speeds = np.where(np.arange(case.workers) < case.slow_workers, case.slow_speed, 1.0).tolist()
    life = (rng.standard_exponential(case.workers) * case.mtbf_seconds).tolist()
    lost = cycle(rng.random(2**12).tolist())
    lives = cycle((rng.standard_exponential(2**12) * case.mtbf_seconds).tolist())
    chance, sizes_of, work_of = stalls.tolist(), sizes.tolist(), work.tolist()
    deaths = 0

    def seconds(worker: int, item: int, stall: float) -> float:
        """Until a worker has done an item, its deaths included."""
        nonlocal deaths
        spent = work_of[item] / speeds[worker] + stall
        block, waited = spent / sizes_of[item], 0.0
        while spent > life[worker]:
            deaths += 1
            waited += life[worker] + case.restart_seconds
            spent += next(lost) * block - life[worker]
            life[worker] = next(lives)
        life[worker] -= spent
        return spent + waited

    begun, ended = np.zeros(len(sizes)), np.zeros(len(sizes))
    given_out = iter(range(len(sizes)))
    alone: dict[int, None] = {}  # items given out that have no copy and no end, oldest first

    def take() -> int | None:
        item = next(given_out, None)
        if case.copies and item is not None:
            alone[item] = None
        return item

    def begin(worker: int, item: int, now: float) -> None:
        begun[item] = max(now, ready[item])
        heappush(events, (begun[item] + seconds(worker, item, chance[item]), worker, item))

    events: list[tuple[float, int, int]] = []
    first = [take() for _ in range(case.workers)]
    held = [take() if case.in_flight > 1 else None for _ in range(case.workers)]
    for worker, item in enumerate(first):
        if item is not None:
            begin(worker, item, case.start_seconds)
    idle = math.inf if None not in first else case.start_seconds
    while events:
        now, worker, done = heappop(events)
        ended[done] = ended[done] or now  # or a copy was faster
        alone.pop(done, None)
        item = held[worker]
        if item is None or ended[item]:
            item = take()
        held[worker] = take() if case.in_flight > 1 else None
        if item is not None:
            begin(worker, item, now)
            continue
        idle = min(idle, now)
        if alone:
            oldest = next(iter(alone))
            del alone[oldest]
            heappush(events, (now + seconds(worker, oldest, 0.0), worker, oldest))
    end = queue_end(begun, ended, sizes, case.driver_seconds)
    return Outcome(end, idle, case.blocks * case.driver_seconds, deaths)


@dataclass(frozen=True)
class Model:
    """A model, as the plan sees it."""

    name: str
    text_seconds: float  # of a worker
    size_bytes: float
    load_seconds: float


def models(plan: Plan, measured: Measured) -> tuple[Model, Model]:
    """The embedded model as measured, and BERT-base by its operations."""
    own, rows = measured.text_seconds, measured.rows_seconds
    base, load = own * measured.base_operations, measured.load_seconds
    times = plan.base_bytes / measured.model_bytes
    return (
        Model("embedded", own + rows, measured.model_bytes, load),
        Model("BERT-base", base + rows, plan.base_bytes, load * times),
    )


@dataclass(frozen=True)
class Driver:
    """What a block asks of the driver, in seconds of each of its parts; they work side by side."""

    processor: float
    network: float
    disk: float

    @property
    def slowest(self) -> float:
        return max(self.processor, self.network, self.disk)


def driver(plan: Plan, measured: Measured, shards: bool = False) -> Driver:
    """As it is; `shards`: workers write the rows and send the sums of `combine` blocks at once."""
    if shards:
        merging = plan.ray_seconds + measured.merge_seconds / plan.combine
        return Driver(merging, measured.whole_bytes / plan.combine * 8e-9 / plan.gbit, 0)
    rows = measured.row_bytes * BLOCK_TEXTS
    return Driver(
        plan.ray_seconds + measured.merge_seconds + measured.append_seconds,
        (rows + measured.partial_bytes) * 8e-9 / plan.gbit,
        rows / plan.disk_mb / 1e6,
    )


def case_of(plan: Plan, measured: Measured, model: Model, **changes: Any) -> Case:
    """Unshuffled shards, which many read tasks read, with everything that goes wrong."""
    made = Case(
        blocks=math.ceil(plan.texts / BLOCK_TEXTS),
        workers=plan.workers,
        block_seconds=model.text_seconds * BLOCK_TEXTS,
        variation=measured.variation_in_order,
        driver_seconds=driver(plan, measured).slowest,
        start_seconds=model.load_seconds + spread(plan, model.size_bytes).tree,
        slow_workers=round(plan.slow_share * plan.workers),
        slow_speed=plan.slow_speed,
        stall_share=plan.stall_share,
        stall_factor=plan.stall_factor,
        mtbf_seconds=plan.mtbf_hours * 3600,
        restart_seconds=plan.restart_seconds + model.load_seconds,
        in_flight=2,
        seed=plan.seed,
    )
    return replace(made, **changes)


@dataclass(frozen=True)
class Spread:
    """Seconds until all machines have a model."""

    driver: float  # each fetches it from the driver's machine
    tree: float  # whoever has it passes it on
    storage: float  # each reads it from shared storage


def spread(plan: Plan, size_bytes: float, machines: int | None = None) -> Spread:
    """A copy for each machine, which its workers share until they load it."""
    count = machines or math.ceil(plan.workers / plan.workers_per_machine)
    once = size_bytes * 8e-9 / plan.gbit
    steps, storage = math.ceil(math.log2(count + 1)), count * size_bytes / plan.storage_mb / 1e6
    return Spread(count * once, steps * once, max(once, storage))


def main() -> None:
    """Print the tables, or what `--measure` finds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", nargs="+", metavar="FILE", help="measure on these texts")
    parser.add_argument("--inputs", type=Path, default=INPUTS, help="what was measured")
    for entry in fields(Plan):
        kind = (lambda typed: int(float(typed))) if entry.type == "int" else float
        parser.add_argument(
            f"--{entry.name.replace('_', '-')}",
            type=kind,
            default=entry.default,
            help=f"{entry.metadata['help']} (%(default)s)",
        )
    given = vars(parser.parse_args())
    if files := given.pop("measure"):
        from measure_many_machines import measure

        print(json.dumps(measure(files), indent=2))
        return
    measured = Measured(**json.loads(given.pop("inputs").read_text("utf-8")))
    from tables_many_machines import TABLES

    for table in TABLES:
        print(table(Plan(**given), measured), end="\n\n")


if __name__ == "__main__":
    main()
