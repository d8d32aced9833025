"""An evaluation that is stored as it goes, and goes on where it stopped."""

import json
import shutil
import sys
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from fillmask_ui.errors import DataError, FillmaskError, opening
from fillmask_ui.evaluation import EvaluatedText, Heartbeat, RunningSummary, evaluate
from fillmask_ui.files import writing
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Example, ModelSignature, SkippedText
from fillmask_ui.runs.info import DONE, FAILED, RUNNING, STOPPED, RunInfo, write_info
from fillmask_ui.runs.rows_file import checksum, dump_row
from fillmask_ui.runs.store import ELSEWHERE, LOCK_FILE, Run, RunStore, lock_file
from fillmask_ui.texts import Texts


@dataclass
class Recorder(AbstractContextManager["Recorder"]):
    """A run open for writing; use it as a context manager.

    Another thread may `close` it at any time: what is still being measured is then dropped.
    """

    folder: Path
    info: RunInfo
    running: RunningSummary  # the figures so far, those of a resumed run's stored rows included
    _file: BinaryIO
    _opened: ExitStack  # closes the file, then releases the lock
    dropped_bytes: int = 0  # length of a half-written last line that was dropped
    # Of the rows that were found on disk: id to checksum of the text.
    stored: Mapping[int, int] = field(default_factory=dict)
    # Of those that were measured: id to group, which changes no checksum.
    stored_groups: Mapping[int, str] = field(default_factory=dict)
    _checksums: dict[int, int] = field(default_factory=dict)  # of texts under way
    # Held while something is written, so that `close` comes before or after it.
    _writing: threading.RLock = field(default_factory=threading.RLock)

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def closed(self) -> bool:
        return self._file.closed

    def measure(
        self,
        model: MaskedLM,
        examples: Iterable[Example | str],
        *,
        baseline: MaskedLM | None = None,
        heartbeat: bool = False,
    ) -> Generator[EvaluatedText | SkippedText | Heartbeat]:
        """Measure the missing texts, as `evaluate`; each row is on disk before it is yielded.

        To stop, close the generator, or `close` from another thread. A `DataError` if the models or
        texts are not those of the run, or the disk is full.
        """
        self.check_models(model, baseline)
        masks = None
        if self.info.config.mask_stream == "collator":
            from fillmask_ui.runs.collator_masks import CollatorMasks

            masks = CollatorMasks(model.vocabulary, self.info.config)
        report = examples.report if isinstance(examples, Texts) else None
        self.know_available(report.available if report else None)
        rows = evaluate(
            baseline or model,
            self.checked(examples),
            self.info.config,
            candidate=model if baseline else None,
            masks=masks,
            done=self.stored.keys(),
            heartbeat=True,
        )
        call_seconds: tuple[float, ...] = ()
        with self.under_way({"name": "local"}), closing(rows):
            for row in rows:
                if isinstance(row, Heartbeat):
                    call_seconds = () if self.stored else row.call_seconds
                    # A short file that is read in its own order was read to its end by now.
                    self.know_available(report.available if report else None)
                else:
                    self.store(dump_row(row, self._checksums[row.id]), row)
                if self.closed:
                    return
                if heartbeat or not isinstance(row, Heartbeat):
                    yield row
            self._set(call_seconds=call_seconds)

    @contextmanager
    def under_way(self, engine: Mapping[str, Any]) -> Iterator[None]:
        """The run is `running` inside, then `done`; `stopped` or `failed` if the block is left."""
        before = self.info.engines
        engines = before if engine in before[-1:] else (*before, engine)
        self._set(state=RUNNING, error=None, engines=engines)
        try:
            yield
            self._set(state=DONE, result=self.running.summary().to_dict())
        except GeneratorExit:
            self._set(state=STOPPED)
            raise
        except FillmaskError as error:
            self._set(state=FAILED, error=str(error))
            raise
        except BaseException as error:
            self._set(state=STOPPED, error=f"{type(error).__name__}: {error}".rstrip(": "))
            raise

    def check_models(self, model: MaskedLM, baseline: MaskedLM | None) -> None:
        """A `DataError` for models other than those that the run began with."""
        check_same("model", self.info.model, model.signature)
        check_same("baseline", self.info.baseline, baseline.signature if baseline else None)

    def know_available(self, available: int | None) -> None:
        """Note how many rows the data has; a `DataError` if the run began with another number."""
        then = self.info.texts.get("available")
        if available in (None, then):
            return
        if then is None and not self.stored:
            self._set(texts={**self.info.texts, "available": available})
        elif then is not None:  # one row more or less makes another permutation
            raise DataError(
                f"the texts had {then:,} rows when run {self.name} began and have {available:,} "
                "now: put them back as they were, or start a new run"
            )

    def note(self, notes: Iterable[str]) -> None:
        self._set(notes=tuple(notes))

    def checked(self, examples: Iterable[Example | str]) -> Iterator[Example]:
        """The texts, each with its checksum noted, or compared with that of its stored row."""
        seen = 0
        for index, text in enumerate(examples):
            example = text if isinstance(text, Example) else Example(index, text)
            text_checksum = checksum(example.content)
            if example.id not in self.stored:
                self._checksums[example.id] = text_checksum
            elif self.stored[example.id] != text_checksum:
                raise DataError(
                    f"text {example.id} is not the one that run {self.name} measured: the texts "
                    "have changed since; start a new run"
                )
            elif self.stored_groups.get(example.id, example.group) != example.group:
                raise DataError(
                    f"text {example.id} was in the group {self.stored_groups[example.id]!r} when "
                    f"run {self.name} measured it and is in {example.group!r} now: start a new run"
                )
            else:
                seen += 1
            yield example
        if seen < len(self.stored):
            raise DataError(
                f"run {self.name} has {len(self.stored)} texts, of which only {seen} are still "
                "there: the texts have changed since; start a new run"
            )

    def store(self, line: bytes, row: EvaluatedText | SkippedText) -> None:
        """Add a whole line to the rows file, and its row to the figures, unless closed."""
        with self._writing:
            if self.closed:
                return
            with self._writes():
                self._file.write(line)
                self._file.flush()
            self._checksums.pop(row.id, None)
            self.running.add(row)

    def _set(self, **changes: Any) -> None:
        with self._writing:
            if self.closed:
                # A generator that is dropped late must not touch another writer's run.
                return
            self.info = replace(self.info, **changes)
            try:
                with self._writes():
                    write_info(self.folder, self.info)
            except DataError:
                # A run whose lock is free counts as stopped, whatever its file says.
                if changes.get("state") in (RUNNING, DONE):
                    raise

    def _writes(self) -> AbstractContextManager[None]:
        advice = (
            f"; the {self.running.seen} rows so far are kept: make room and resume with "
            f"--resume {self.name}"
        )
        return writing(self.folder, advice if self.folder.exists() else "")

    def close(self) -> None:
        """Release the run; one under way is then `stopped`. Again it does nothing."""
        with self._writing:
            if self.info.state == RUNNING:
                self._set(state=STOPPED)
            # A failed flush was already reported by the write.
            with suppress(OSError):
                self._opened.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def start(store: RunStore, info: RunInfo) -> Recorder:
    """A new run, open for writing, of an `info` whose config is resolved; its name is made here."""
    folder = store.root / store.create(info).name
    try:
        return _open(Run(folder))
    except DataError:
        shutil.rmtree(folder, ignore_errors=True)  # nothing was measured: no run to list
        raise


def resume(store: RunStore, name: str) -> Recorder:
    """A stopped run, open for writing; a `DataError` if it is unknown, being written or broken."""
    run = store.open(name)
    if run.lacks_rows:
        run.info = replace(run.info, state=STOPPED, result=None)
    return _open(run)


def _open(run: Run) -> Recorder:
    """Count the stored rows and cut a half-written last line off."""
    info, stored, groups, whole = run.info, dict[int, int](), dict[int, str](), 0
    running = info.running()
    with ExitStack() as opened:
        lock = lock_file(run.folder / LOCK_FILE, f"run {info.name}", ELSEWHERE)
        opened.callback(lock.release)
        with opening("a run", run.rows_path):
            file = opened.enter_context(run.rows_path.open("ab"))
        for line in run.lines():
            stored[line.row.id] = line.checksum
            if isinstance(line.row, EvaluatedText):
                groups[line.row.id] = sys.intern(line.row.group)
            running.add(line.row)
            whole += len(line.content)
        if dropped := run.rows_path.stat().st_size - whole:
            file.truncate(whole)
        return Recorder(run.folder, info, running, file, opened.pop_all(), dropped, stored, groups)


def check_same(role: str, stored: Mapping[str, Any] | None, current: ModelSignature | None) -> None:
    """A `DataError` unless model and versions are those that the run began with."""
    if stored is None and current is None:
        return
    if stored is None or current is None:
        raise DataError(
            f"the run has {'no' if stored is None else 'a'} {role}: resume it with the models that "
            "it began with"
        )
    stored, values = json.loads(json.dumps([dict(stored), current.to_dict()]))  # tuples as lists
    changes = [
        f"{name} was {stored.get(name)!r} and is {value!r}"
        for name, value in values.items()
        if name not in ("name", "notes") and stored.get(name) != value
    ]
    if changes:
        raise DataError(
            f"the {role} is not the one that the run began with: {'; '.join(changes)}; start a new "
            "run"
        )
