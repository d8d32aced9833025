"""Every attempt ends with its code and its words, without a traceback, and nothing is lost."""

import shlex
from pathlib import Path

import pytest
from cli.attempts import ATTEMPTS, LONG, Attempt


def _files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.name[:60])
def test_an_attempt_ends_well(attempt: Attempt, fillmask, tmp_path, tiny_models, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    if attempt.make is not None:
        attempt.make(tmp_path, tiny_models.folder("bert"))
    before = _files(tmp_path)
    result = fillmask(*(own.format(tmp_path, **LONG) for own in shlex.split(attempt.command)))
    said = result.stderr if attempt.code else result.stdout
    assert result.returncode == attempt.code, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    for word in attempt.words:
        assert word.lower() in " ".join(said.lower().split())
    after = _files(tmp_path)
    assert not (tmp_path / "harm").exists()
    if attempt.code:
        assert {path: after.get(path) for path in before} == before
    if attempt.code == 2:
        assert after.keys() == before.keys()
        assert result.stdout == ""
