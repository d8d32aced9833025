"""The program called through its entry point, without the start of a process."""

import io
import json
import shutil
import sys
from dataclasses import dataclass

import pytest

from fillmask_ui.cli.main import run
from fillmask_ui.files import asset


@dataclass(frozen=True)
class Result:
    """What a call came back with."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def json(self):
        return json.loads(self.stdout)


@pytest.fixture
def fillmask(monkeypatch, capsys, tmp_path):
    """`fillmask("eval", ...)` as the shell would; runs are kept in a folder of the test."""
    monkeypatch.setenv("FILLMASK_UI_RUNS", str(tmp_path / "runs"))

    def call(*arguments, stdin=None):
        monkeypatch.setattr(sys, "argv", ["fillmask-ui", *map(str, arguments)])
        if stdin is not None:
            data = stdin if isinstance(stdin, bytes) else stdin.encode()
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        with pytest.raises(SystemExit) as exit_:
            run()
        captured = capsys.readouterr()
        return Result(exit_.value.code or 0, captured.out, captured.err)

    return call


@pytest.fixture(scope="session")
def damaged(tmp_path_factory):
    """The embedded model with word vectors of zeros, which is much worse."""
    folder = tmp_path_factory.mktemp("damaged") / "model"
    shutil.copytree(asset("model"), folder)
    with (folder / "model.safetensors").open("r+b") as file:
        size = int.from_bytes(file.read(8), "little")
        tensors = json.loads(file.read(size))
        name = "bert.embeddings.word_embeddings.weight"
        start, end = tensors[name]["data_offsets"]
        file.seek(8 + size + start)
        file.write(bytes(end - start))
    return folder
