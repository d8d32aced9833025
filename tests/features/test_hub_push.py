"""Commands that push what they have made to a hub."""

import pytest


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
