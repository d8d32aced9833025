"""The program called through its entry point, without the start of a process."""

import json
import shutil
from datetime import datetime, timezone

import pytest
from recorded.program import call

from fillmask_ui.files import asset
from fillmask_ui.runs import RunStore


@pytest.fixture
def fillmask(monkeypatch, tmp_path):
    """`fillmask("eval", ...)` as the shell would; runs are kept in a folder of the test."""
    monkeypatch.setenv("FILLMASK_UI_RUNS", str(tmp_path / "runs"))
    return call


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "runs", lambda: datetime(2026, 5, 17, 9, 30, tzinfo=timezone.utc))


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
