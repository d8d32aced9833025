"""What the environment says of the hub, which its client reads when it is imported."""

import os
import subprocess
import sys

import pytest

MODEL = ("predict", "-m", "org/model", "A [MASK].")


@pytest.mark.parametrize(
    ("variables", "arguments", "words"),
    [
        ({"HF_HUB_DOWNLOAD_TIMEOUT": "abc"}, MODEL, "HF_HUB_DOWNLOAD_TIMEOUT is 'abc'"),
        ({"HF_TOKEN": "hf_é"}, MODEL, "codec can't encode"),
        ({"HF_HUB_CACHE": "{}/file"}, ("models",), "cannot be read"),
        ({"HF_HOME": "{}/file"}, MODEL, "Not a directory"),
        ({"HF_ENDPOINT": "http://[::"}, MODEL, "no address of a hub"),
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
