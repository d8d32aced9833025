"""The tables of `docs/many-machines.md`, as `simulate_many_machines.py` prints them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields, replace

from simulate_many_machines import (
    BLOCK_TEXTS,
    Measured,
    Plan,
    case_of,
    driver,
    models,
    simulate,
    spread,
)


def table(head: str, *rows: Sequence[object]) -> str:
    """Markdown; cells of the head are separated by |."""
    names = [name.strip() for name in head.split("|")]
    lines = [names, ["---"] * len(names), *([str(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def digits(value: float) -> str:
    """Three digits that count, without an exponent.

    >>> digits(1234567.8), digits(0.0012345), digits(2.0)
    ('1,230,000', '0.00123', '2')
    """
    if not value:
        return "0"
    places = 2 - math.floor(math.log10(abs(value)))
    text = f"{round(value, places):,.{max(places, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def size(count: float) -> str:
    """Of bytes, in the unit that fits.

    >>> size(4321), size(2.5e12)
    ('4.32 KB', '2.5 TB')
    """
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            break
        count /= 1000
    return f"{digits(count)} {unit}"


def duration(seconds: float) -> str:
    """Of a time, in the unit that fits.

    >>> duration(0.0041), duration(90), duration(7200)
    ('4.1 ms', '90 s', '2 h')
    """
    for limit, factor, unit in ((1e-3, 1e6, "µs"), (1, 1e3, "ms"), (1000, 1, "s")):
        if seconds < limit:
            return f"{digits(seconds * factor)} {unit}"
    return f"{digits(seconds / 3600)} h"


def measured_table(plan: Plan, measured: Measured) -> str:
    """What is derived of the inputs, too."""
    small, base = models(plan, measured)
    rows = [
        ("text, UTF-8", size(measured.text_bytes)),
        ("its lognormal fit: mean and deviation of ln(bytes)",
         f"{digits(measured.log_mean)}, {digits(measured.log_deviation)}"),
        ("tokens of a text, hidden ones of them",
         f"{digits(measured.tokens_a_text)}, {digits(measured.hidden_tokens_a_text)}"),
        ("deviation / mean of the work of blocks, as the files lie",
         digits(measured.variation_in_order)),
        ("the same of shuffled texts", digits(measured.variation_shuffled)),
        ("worker: a text, embedded model", duration(measured.text_seconds)),
        ("worker: summing its row up and writing it as JSON", duration(measured.rows_seconds)),
        ("operations of BERT-base / of the embedded model, same texts",
         digits(measured.base_operations)),
        ("worker: a block, embedded", duration(small.text_seconds * BLOCK_TEXTS)),
        ("worker: a block, BERT-base (by operations)", duration(base.text_seconds * BLOCK_TEXTS)),
        ("driver: merging the sums of a block", duration(measured.merge_seconds)),
        ("driver: appending the rows of a block", duration(measured.append_seconds)),
        ("driver: memory kept of a text", size(measured.kept_bytes)),
        ("driver: more at the peak of `summary()`, of a text", size(measured.summary_bytes)),
        ("driver: `summary()`, of a text", duration(measured.summary_seconds)),
        ("driver: memory of a block in a set of blocks", size(measured.unit_bytes)),
        ("driver, resumed: memory of a stored row", size(measured.stored_bytes)),
        ("driver, resumed: reading a stored row", duration(measured.resume_seconds)),
        ("read task: a text, as the file lies", duration(measured.read_seconds)),
        ("read task, shuffled: a text, before the first one comes",
         duration(measured.shuffle_seconds)),
        ("read task, shuffled: a text, from then on", duration(measured.shuffled_read_seconds)),
        ("a process until it holds the embedded model", duration(measured.load_seconds)),
        ("files of the embedded model", size(measured.model_bytes)),
    ]  # fmt: skip
    return table("measured | value", *rows)


def assumed_table(plan: Plan, measured: Measured) -> str:  # noqa: ARG001
    """The options."""
    return table(
        "option | value | meaning",
        *(
            (f"`--{entry.name.replace('_', '-')}`", digits(getattr(plan, entry.name)),
             entry.metadata["help"])
            for entry in fields(Plan)
        ),
    )  # fmt: skip


def run_table(plan: Plan, measured: Measured) -> str:
    """The run with everything that goes wrong, for each model."""
    rows = []
    tokens = plan.texts * measured.tokens_a_text / 1e9
    for model in models(plan, measured):
        case = case_of(plan, measured, model)
        found = simulate(case)
        hours = plan.workers * found.seconds / 3600
        cost = hours * plan.price
        rows.append((
            model.name, duration(found.seconds), f"{plan.texts / found.seconds:,.0f}",
            f"{found.driver_seconds / found.seconds:.1%}",
            duration(found.seconds - found.idle_seconds), found.deaths,
            digits(hours), digits(cost), digits(cost / tokens),
            digits(cost / tokens * measured.tokens_a_text / measured.hidden_tokens_a_text),
        ))  # fmt: skip
    return table(
        "model | time | texts/s | driver busy | first idle worker to the end | deaths | core hours"
        " | cost | per 10^9 tokens read | per 10^9 hidden tokens",
        *rows,
    )


def scaling_table(plan: Plan, measured: Measured) -> str:
    """More workers, embedded model."""
    small = models(plan, measured)[0]
    rows = []
    for workers in (100, 300, 1000, 3000, 6000):
        changed = replace(plan, workers=workers)
        cells = [f"{workers:,}"]
        for shards in (False, True):
            used = driver(changed, measured, shards).slowest
            found = simulate(case_of(changed, measured, small, driver_seconds=used))
            busy = found.driver_seconds / found.seconds
            cells += [duration(found.seconds), f"{busy:.0%}"]
        rows.append(cells)
    return table(
        "workers | as it is | driver busy | rows in shards, sums combined | driver busy", *rows
    )


def saturation_table(plan: Plan, measured: Measured) -> str:
    """Workers that each part can serve, where nothing else is in the way."""
    blocks = [model.text_seconds * BLOCK_TEXTS for model in models(plan, measured)]
    now, then = driver(plan, measured), driver(plan, measured, shards=True)
    merge = now.processor - plan.ray_seconds
    page = measured.resume_seconds * BLOCK_TEXTS
    parts = {
        "driver's processor, if the page draws each row": page + now.processor,
        "one read task, shuffled texts": measured.shuffled_read_seconds * BLOCK_TEXTS,
        "driver's processor": now.processor,
        "driver's processor, if Ray takes 0.5 ms a block": merge + 0.0005,
        "driver's processor, if Ray takes 10 ms a block": merge + 0.01,
        "driver's network": now.network,
        "driver's disk": now.disk,
        "one read task, texts as the file lies": measured.read_seconds * BLOCK_TEXTS,
        "driver's processor, rows in shards, sums combined": then.processor,
        "driver's network, rows in shards, sums combined": then.network,
    }
    rows = [
        (name, duration(each), [block / each for block in blocks]) for name, each in parts.items()
    ]
    rows.sort(key=lambda row: row[2])
    return table(
        "part | of a block | workers, embedded | workers, BERT-base",
        *((name, each, *map(digits, counts)) for name, each, counts in rows),
    )  # fmt: skip


def straggler_table(plan: Plan, measured: Measured) -> str:
    """The end of small and large runs, embedded model."""
    model = models(plan, measured)[0]
    rows = []
    for power in range(6, 10):
        sized = replace(plan, texts=10**power)
        case = case_of(sized, measured, model)
        whole = case.blocks * case.block_seconds
        slow = case.slow_workers
        full, ideal = case.workers, case.workers - slow * (1 - case.slow_speed)
        kinds = (
            replace(case, slow_workers=0, slow_speed=1.0),
            case,
            replace(case, copies=True),
            replace(case, blocks=4 * case.blocks, block_seconds=case.block_seconds / 4,
                    driver_seconds=case.driver_seconds / 4),
        )  # fmt: skip
        fixed = whole / case.workers / case.slow_speed
        times = [*(simulate(kind).seconds for kind in kinds), fixed]
        speeds = [full, *[ideal] * 4]
        more = (
            f"{time * speed / whole - 1:+.1%}" for time, speed in zip(times, speeds, strict=True)
        )
        rows.append((f"10^{power}", duration(whole / ideal), *more))
    return table(
        "texts | all work / all speed | no slow worker | slow ones | slow, copies"
        " | slow, blocks of 128 | slow, fixed shares",
        *rows,
    )


def death_table(plan: Plan, measured: Measured) -> str:
    """What deaths cost, BERT-base."""
    model = models(plan, measured)[1]
    calm = simulate(case_of(plan, measured, model, mtbf_seconds=math.inf)).seconds
    rows = []
    for hours in (1000, 200, 24, 4):
        found = simulate(case_of(plan, measured, model, mtbf_seconds=hours * 3600))
        rows.append((f"{hours:,} h", f"{found.deaths:,}", duration(found.seconds),
                     f"{found.seconds / calm - 1:+.2%}"))  # fmt: skip
    return table("a worker dies every | deaths | time | more than without", *rows)


def spread_table(plan: Plan, measured: Measured) -> str:
    """How a model comes to the machines."""
    rows = []
    for model in models(plan, measured):
        for machines in (math.ceil(plan.workers / plan.workers_per_machine), plan.workers):
            found = spread(plan, model.size_bytes, machines)
            rows.append((model.name, f"{machines:,}", size(model.size_bytes * machines),
                         duration(found.driver), duration(found.tree),
                         duration(found.storage)))  # fmt: skip
    return table(
        "model | machines | bytes in all | all from the driver's machine | passed on as a tree"
        " | shared storage",
        *rows,
    )


def bytes_table(plan: Plan, measured: Measured) -> str:
    """Over the network, of a text and in all."""
    parts = {
        "texts to workers (bytes and 8 for the id)": measured.text_bytes + 8,
        "rows to the driver": measured.row_bytes,
        "sums to the driver": measured.partial_bytes / BLOCK_TEXTS,
        "sums, compressed": measured.compressed_bytes / BLOCK_TEXTS,
        f"all sums, of {digits(plan.combine)} blocks at a time":
            measured.whole_bytes / BLOCK_TEXTS / plan.combine,
    }  # fmt: skip
    return table(
        "what | of a text | in all",
        *((name, size(each), size(each * plan.texts)) for name, each in parts.items()),
    )


def memory_table(plan: Plan, measured: Measured) -> str:
    """Of the driver, and of the read task of shuffled texts, which grows with the texts."""
    parts = {
        "sums of each text, one model": measured.kept_bytes,
        # An id and five numbers of each model, of eight bytes.
        "the same with a baseline": measured.kept_bytes * (1 + 2 * 5) / (1 + 5),
        "more at the peak of `summary()`": measured.summary_bytes,
        "blocks delivered, and begun": 2 * measured.unit_bytes / BLOCK_TEXTS,
        "resumed: ids and checksums of stored rows": measured.stored_bytes,
        "read task, shuffled: order, places": 24,
        "read task, shuffled: temporary file": measured.text_bytes,
    }
    counts = (2000, 200_000, 10_000_000, plan.texts)
    return table(
        "what | of a text | " + " | ".join(f"{count:,} texts" for count in counts),
        *((name, size(each), *(size(each * count) for count in counts))
          for name, each in parts.items()),
    )  # fmt: skip


def hours_table(plan: Plan, measured: Measured) -> str:
    """What one process does before or after all others work."""
    parts = {
        "resume: reading the stored rows": measured.resume_seconds,
        "shuffled texts: before the first one comes": measured.shuffle_seconds,
        "`summary()` at the end": measured.summary_seconds,
    }
    return table(
        f"what one process does | of a text | 10^7 texts | 10^8 texts | {plan.texts:,} texts",
        *((name, *(duration(each * count) for count in (1, 10**7, 10**8, plan.texts)))
          for name, each in parts.items()),
    )  # fmt: skip


def format_table(plan: Plan, measured: Measured) -> str:
    """Rows on disk."""
    parts = {
        "rows.jsonl": measured.row_bytes,
        "rows.jsonl, gzip": measured.gzip_bytes,
        "parquet, zstd": measured.parquet_bytes,
    }
    return table(
        "rows as | of a text | of all | a shard of 10^6 texts",
        *((name, size(each), size(each * plan.texts), size(each * 1e6))
          for name, each in parts.items()),
    )  # fmt: skip


TABLES = (
    run_table, scaling_table, saturation_table, straggler_table, death_table, memory_table,
    hours_table, bytes_table, format_table, spread_table, measured_table, assumed_table,
)  # fmt: skip
