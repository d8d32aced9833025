"""What a server leaves behind."""

import os
import urllib.request
from pathlib import Path

import httpx
from serving import started

ROOT = Path(__file__).parents[2]


def test_nothing_is_left_by_a_server_that_is_told_to_stop(tmp_path):
    folder = tmp_path / "tmp"
    folder.mkdir()
    environment = os.environ | {"TMPDIR": str(folder), "PYTHONPATH": str(ROOT)}
    environment.pop("GRADIO_TEMP_DIR", None)  # of the pages in this process
    with started("--public", env=environment) as (url, page):
        (sent,) = httpx.post(f"{url}gradio_api/upload", files={"files": ("a.txt", b"a b")}).json()
        assert Path(sent).read_text() == "a b"
        assert Path(sent).is_relative_to(folder)
        # An open page does not hold it up.
        urllib.request.urlopen(f"{url}gradio_api/heartbeat/somebody")
    assert page.returncode == 0
    assert not [path for path in folder.rglob("*") if not path.is_dir()]
    assert not [*folder.glob("fillmask-ui-*")]
