"""`--push-to-hub` against a hub on 127.0.0.1, with the real client in processes of its own."""

import json

import pytest

_ATTEMPTS = """
import json, os, sys
from pathlib import Path
from fillmask_ui.errors import NetworkError
from fillmask_ui.quantizing.hub_push import HubTarget
folder, attempts = json.load(sys.stdin)
for repository, os.environ["HF_TOKEN"] in attempts:
    try:
        print(HubTarget(repository).push(Path(folder)))
    except NetworkError as error:
        print(error)
"""


def test_a_folder_reaches_the_hub_whole(loopback_hub, tiny_models, tmp_path):
    out = tmp_path / "out"
    command = ["quantize", tiny_models.folder("bert"), "-o", out, "--no-measure", "--private"]
    command = ["-m", "fillmask_ui", *command, "--push-to-hub", "tiny"]
    done = loopback_hub.run(tmp_path / "hub", *command, HF_TOKEN=loopback_hub.token)
    assert done.returncode == 0, done.stderr
    assert done.stderr.endswith(f"pushed to {loopback_hub.endpoint}/me/tiny\n")
    repository = loopback_hub.find("model", "me/tiny")
    assert repository.private
    there = repository.files[repository.revisions["main"]]
    here = {path.relative_to(out).as_posix(): path for path in out.rglob("*") if path.is_file()}
    assert {name: path.read_bytes() for name, path in here.items()} == there
    assert loopback_hub.uploaded.keys() and "onnx/model_int8.onnx" in there


def test_a_hub_that_refuses_leaves_the_folder_and_names_it(loopback_hub, tmp_path):
    folder = tmp_path / "made it"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    attempts = {
        ("me/tiny", ""): "(there is no token): log in with a token that may write",
        ("me/tiny", "hf_other"): "Unauthorized",
        ("others/tiny", loopback_hub.token): "take a token that may write there",
    }
    given = json.dumps([str(folder), [*attempts]])
    done = loopback_hub.run(tmp_path / "hub", "-c", _ATTEMPTS, given=given)
    lines = done.stdout.splitlines()
    assert len(lines) == len(attempts), done.stderr
    for line, (repository, _), told in zip(lines, attempts, attempts.values(), strict=True):
        assert line.startswith(f"{folder} is complete and stays, but {repository} on the hub")
        assert told in line and line.endswith(f"then: hf upload {repository} '{folder}'")
        assert loopback_hub.find("model", repository) is None
    assert folder.is_dir()


@pytest.mark.parametrize("command", ["quantize", "package"])
def test_a_slip_in_the_name_is_told_before_any_work(fillmask, tmp_path, command):
    for arguments, told in (
        (("--push-to-hub", "a/b/c"), "'a/b/c' cannot name a repository of the hub: "),
        (("--push-to-hub", ""), "'' cannot name a repository of the hub: "),
        (("--private",), "--private belongs to --push-to-hub"),
    ):
        done = fillmask(command, "nowhere", "-o", tmp_path / "out", *arguments)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert told in done.stderr
