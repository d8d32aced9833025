"""What the environment says of the hub, which its client reads when it is imported."""

import os
import shutil
import subprocess
import sys

import pytest

MODEL = ("predict", "-m", "org/model", "A [MASK].")


@pytest.mark.parametrize(
    ("variables", "arguments", "words"),
    [
        ({"HF_TOKEN": "hf_é"}, MODEL, "codec can't encode"),
        ({"HF_HUB_CACHE": "{}/file"}, ("models",), "cannot be read"),
        ({"HF_HOME": "{}/file"}, MODEL, "Not a directory"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_one_line_says_what_is_wrong(variables, arguments, words, tmp_path):
    (tmp_path / "file").touch()
    own = {name: value.format(tmp_path) for name, value in variables.items()}
    closed = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, "-m", "fillmask_ui", *arguments],
        env={**os.environ, **closed, **own},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert words in done.stderr


def test_a_damaged_repository_of_the_cache_is_named(tmp_path, tiny_models):
    home = tmp_path / "models--org--model"
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_bytes(b"\xff\0\n\x80")  # no commit
    shutil.copytree(tiny_models.folder("bert"), home / "snapshots" / "abc")
    done = subprocess.run(
        [sys.executable, "-m", "fillmask_ui", *MODEL],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: org/model is not complete in the local cache")
