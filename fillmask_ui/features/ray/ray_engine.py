"""Evaluations on the workers of a cluster: this process reads texts and stores rows."""

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice

from fillmask_ui.errors import OptionError
from fillmask_ui.features.ray import ray_machines
from fillmask_ui.features.ray.ray_connection import Cluster
from fillmask_ui.features.ray.ray_crew import Block, Crew
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import SkippedText
from fillmask_ui.runs import Plan, Recorder, RunProgress
from fillmask_ui.runs.perform import Measure, progress_of
from fillmask_ui.runs.rows_file import read_row
from fillmask_ui.texts import Texts

# Some seconds of work if every token of a text is a reading, and batches of about equal length.
BLOCK_TEXTS = 64


@dataclass(frozen=True)
class RayEngine:
    """Measures on the workers of a cluster."""

    cluster: Cluster

    def prepare(self, plan: Plan, model: MaskedLM, baseline: MaskedLM | None) -> Measure:
        """Check that all machines can measure the plan as this process would."""
        if plan.config.mask_stream == "collator":
            raise OptionError(
                "the mask stream 'collator' draws for each text after all texts before it, so it "
                "cannot be shared out: leave out --engine ray, or take the masks of each text"
            )
        models = [("model", plan.model, model)]
        if plan.baseline is not None and baseline is not None:
            models.append(("baseline", plan.baseline, baseline))
        paths = [path for _, choice, _ in models for path in ray_machines.paths_of(choice)]
        machines = [ray_machines.describe(paths)]
        if not self.cluster.local:
            machines += ray_machines.machines(paths)
        ray_machines.check_versions(machines)
        placed = [
            ray_machines.place_model(role, choice, model, self.cluster.threads, machines)
            for role, choice, model in models
        ]
        return partial(self._measure, placed)

    def _measure(
        self, placed: list[ray_machines.Placed], recorder: Recorder, texts: Texts
    ) -> Generator[RunProgress]:
        crew, tokens = Crew(self.cluster, placed, recorder.info.config), 0
        measured = crew.measure(_blocks(recorder, texts))
        with recorder.under_way(self.cluster.to_dict()), closing(measured):
            for lines in measured:
                if recorder.closed:  # from another thread
                    return
                recorder.know_available(texts.report.available)
                rows = []
                for line in lines:
                    row = read_row(line, "a row of a worker").row
                    recorder.store(line, row)
                    rows.append(row)
                    if not isinstance(row, SkippedText):
                        tokens += len(row.scores.nll_nats)
                through = None if rows else recorder.running.seen
                yield progress_of(
                    recorder,
                    texts,
                    rows=tuple(rows),
                    tokens=tokens,
                    workers=crew.ready,
                    through=through,
                )
            recorder.know_available(texts.report.available)


def _blocks(recorder: Recorder, texts: Texts) -> Iterator[Block]:
    """The texts that a run lacks, some at a time."""
    missing = (text for text in recorder.checked(texts) if text.id not in recorder.stored)
    while block := list(islice(missing, BLOCK_TEXTS)):
        yield block
