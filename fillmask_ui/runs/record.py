"""An evaluation that is stored as it goes, and goes on where it stopped."""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from fillmask_ui.errors import DataError, FillmaskError
from fillmask_ui.evaluation import (
    EvaluatedText,
    EvaluationConfig,
    Heartbeat,
    Masks,
    RunningSummary,
    evaluate,
)
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Example, ModelSignature, SkippedText
from fillmask_ui.runs.lock import RunLock
from fillmask_ui.runs.store import (
    DONE,
    FAILED,
    LOCK_FILE,
    ROWS_FILE,
    RUNNING,
    STOPPED,
    Run,
    RunInfo,
    RunStore,
    parse_line,
    row_from_dict,
    write_info,
)
from fillmask_ui.texts import Texts

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass
class Recorder:
    """A run open for writing; use it as a context manager.

    Attributes:
        folder: of the run.
        info: its run.json.
        running: the figures so far, those of a resumed run's stored rows included.
        dropped_bytes: length of a half-written last line that was dropped; 0 if there was none.
    """

    folder: Path
    info: RunInfo
    running: RunningSummary
    dropped_bytes: int = 0
    _lock: RunLock | None = None
    _file: BinaryIO | None = None
    _checksums: dict[int, int] = field(default_factory=dict)
    _done: set[int] = field(default_factory=set)
    _measuring: bool = False

    @property
    def name(self) -> str:
        return self.info.name

    def measure(
        self,
        model: MaskedLM,
        examples: Iterable[Example | str],
        *,
        baseline: MaskedLM | None = None,
        masks: Masks | None = None,
        heartbeat: bool = False,
    ) -> Iterator[EvaluatedText | SkippedText | Heartbeat]:
        """Measure what is missing; each row is on disk before it is yielded.

        Stop by closing the generator: the run is then `stopped` and can be resumed.

        Args:
            model: with the signature that the run has.
            examples: the texts that the run has, from the first.
            baseline: likewise.
            masks: as for `evaluate`.
            heartbeat: likewise.

        Raises:
            DataError: if the models or texts are not those of the run, or the disk is full.
        """
        _check_same("model", self.info.model, model.signature)
        if (baseline is None) != (self.info.baseline is None):
            raise DataError(f"run {self.name} has {'no' if baseline else 'a'} baseline")
        if baseline is not None and self.info.baseline is not None:
            _check_same("baseline", self.info.baseline, baseline.signature)
        if isinstance(examples, Texts):
            self.check_texts(examples)
            if not self._done:
                counted = {"available": examples.report.available}
                self._set(texts={**self.info.texts, **counted})
        self._set(state=RUNNING, error=None)
        self._measuring = True
        rows = evaluate(
            model,
            self._watched(examples),
            self.info.config,
            baseline=baseline,
            masks=masks,
            done=frozenset(self._done),
            heartbeat=heartbeat,
        )
        try:
            for row in rows:
                if not isinstance(row, Heartbeat):
                    self._append(row)
                yield row
            self._finish()
        except GeneratorExit:
            self._set(state=STOPPED)
            raise
        except FillmaskError as error:
            self._set(state=FAILED, error=str(error))
            raise
        except BaseException as error:
            self._set(state=STOPPED, error=f"{type(error).__name__}: {error}")
            raise

    def check_texts(self, texts: Texts) -> None:
        """Refuse texts that cannot be those of the run, before anything is measured.

        One row more or less makes another permutation, in which the texts that are missing come
        before the stored ones whose absence would show.

        Raises:
            DataError: if the data has another number of rows than when the run began.
        """
        then, now = self.info.texts.get("available"), texts.report.available
        if then is not None and now is not None and then != now:
            raise DataError(
                f"the texts had {then:,} rows when run {self.name} began and have {now:,} now: put "
                "them back as they were, or start a new run"
            )

    def note(self, notes: Iterable[str]) -> None:
        """Store what a reader should know of the texts."""
        self._set(notes=tuple(notes))

    def _watched(self, examples: Iterable[Example | str]) -> Iterator[Example]:
        """The texts, each with its checksum noted or compared with the one of the stored row."""
        seen = 0
        for index, text in enumerate(examples):
            example = text if isinstance(text, Example) else Example(index, text)
            checksum = zlib.crc32(example.text.encode("utf-8", "surrogatepass"))
            if example.id in self._done:
                seen += 1
                if self._checksums.pop(example.id, checksum) != checksum:
                    raise DataError(
                        f"text {example.id} is not the one that run {self.name} measured: the "
                        "texts have changed since; start a new run"
                    )
            else:
                self._checksums[example.id] = checksum
            yield example
        if seen < len(self._done):
            raise DataError(
                f"run {self.name} has {len(self._done)} texts, of which only {seen} are still "
                "there: the texts have changed since; start a new run"
            )

    def _append(self, row: EvaluatedText | SkippedText) -> None:
        if isinstance(row, SkippedText):
            values: dict[str, Any] = {"id": row.id, "skipped": row.reason}
        else:
            values = row.to_dict()
        values["checksum"] = self._checksums.pop(row.id)
        line = json.dumps(values, ensure_ascii=False, separators=(",", ":")) + "\n"
        try:
            self._file.write(line.encode("utf-8", "surrogatepass"))
            self._file.flush()
        except OSError as error:
            raise DataError(
                f"the run cannot be written further ({error.strerror}): the rows so far, "
                f"{self.running.seen}, are kept in {self.folder}; make room and resume with "
                f"--resume {self.name}"
            ) from error
        self.running.add(row)

    def _finish(self) -> None:
        summary = self.running.summary()
        self._set(state=DONE, result=summary.to_dict())

    def _set(self, **changes: Any) -> None:
        if self._lock is None:
            # Closed: a generator that is dropped late must not touch what is another's by now.
            return
        self.info = replace(self.info, **changes)
        try:
            write_info(self.folder, self.info)
        except OSError as error:
            if changes.get("state") in (RUNNING, DONE):
                raise DataError(
                    f"run.json cannot be written ({error.strerror}): the rows so far are kept in "
                    f"{self.folder}; make room and resume with --resume {self.name}"
                ) from error
            # On a full disk the state stays `running`; as nobody holds the lock, readers see
            # it as stopped.

    def close(self) -> None:
        """Release the run; harmless if done before. A run under way is then `stopped`."""
        if self._lock is not None and self._measuring and self.info.state == RUNNING:
            self._set(state=STOPPED)
        if self._file is not None:
            try:
                self._file.close()
            except OSError:
                # What could not be flushed was already reported by the write.
                self._file = None
            self._file = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def start(store: RunStore, info: RunInfo) -> Recorder:
    """A new run, open for writing.

    Args:
        store: where it is kept.
        info: with a resolved config; its name and time are filled in.

    Raises:
        DataError: if it cannot be written.
    """
    made = store.create(info)
    folder = store.root / made.name
    try:
        return _open(folder, made)
    except DataError:
        shutil.rmtree(folder, ignore_errors=True)  # nothing was measured: no run to list
        raise


def resume(store: RunStore, name: str) -> Recorder:
    """A stopped run, open for writing, its stored rows read.

    Raises:
        DataError: if it is unknown, of another version, being written or broken.
    """
    run: Run = store.open(name)
    return _open(run.folder, run.info)


def _open(folder: Path, info: RunInfo) -> Recorder:
    running = RunningSummary(
        config=info.config,
        vocabulary_size=info.model["vocabulary_size"],
        limits=info.limits,
    )
    recorder = Recorder(folder, info, running, _lock=RunLock(folder / LOCK_FILE, info.name))
    try:
        path = folder / ROWS_FILE
        recorder._file = path.open("ab+")
        recorder.dropped_bytes = _read_back(recorder, path)
    except BaseException:
        recorder.close()
        raise
    return recorder


def _read_back(recorder: Recorder, path: Path) -> int:
    """Count the stored rows; cut a half-written last line off and return its length."""
    file = recorder._file
    file.seek(0)
    whole = 0
    for number, line in enumerate(file, start=1):
        if not line.endswith(b"\n"):
            file.truncate(whole)
            return len(line)
        whole += len(line)
        values = parse_line(line, path, number)
        if values["id"] in recorder._done:
            raise DataError(f"line {number} of {path} repeats text {values['id']}: evaluate again")
        recorder._done.add(values["id"])
        recorder._checksums[values["id"]] = values["checksum"]
        recorder.running.add(row_from_dict(values, path, number))
    return 0


def _check_same(what: str, stored: Mapping[str, Any], now: ModelSignature) -> None:
    """A resumed run ends with the same numbers only on the same model and versions."""
    current = json.loads(json.dumps(now.to_dict()))
    stored = json.loads(json.dumps(dict(stored)))
    changed = [
        f"{name} was {stored.get(name)!r} and is {current[name]!r}"
        for name in current
        if name not in ("name", "notes") and stored.get(name) != current[name]
    ]
    if changed:
        raise DataError(
            f"the {what} is not the one that the run has: {'; '.join(changed)}; start a new run"
        )


def prepare_info(
    config: EvaluationConfig,
    model: MaskedLM,
    *,
    baseline: MaskedLM | None = None,
    **fields: Any,
) -> RunInfo:
    """The `RunInfo` of a new run, its config resolved for the models.

    Args:
        config: what is measured.
        model: what is measured.
        baseline: a second model.
        **fields: `texts`, `choices`, `limits` of `RunInfo`.

    Raises:
        OptionError: if the config asks for more than the models take.
    """
    from fillmask_ui import __version__

    models = [model] if baseline is None else [model, baseline]
    versions = {"fillmask-ui": __version__}
    for entry in models:
        versions |= entry.signature.versions
    return RunInfo(
        name="",
        created="",
        config=config.resolved(*(entry.max_tokens for entry in models)),
        model=model.signature.to_dict(),
        baseline=None if baseline is None else baseline.signature.to_dict(),
        versions=versions,
        **fields,
    )
