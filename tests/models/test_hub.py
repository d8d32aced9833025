"""Models from a hub on 127.0.0.1, with the real client in its own process.

The client reads its address and cache folder when it is imported, so each test runs a script in
a fresh interpreter whose environment points there.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import onnx
import pytest

from fillmask_ui.errors import ModelError
from fillmask_ui.models import load_model
from fillmask_ui.models.onnx_graph import read_graph

SCRIPT = """
import importlib.util, json, sys
jobs, with_torch = json.load(sys.stdin)
if not with_torch:  # saves the seconds of importing it
    find = importlib.util.find_spec
    importlib.util.find_spec = lambda name, *rest: None if name == "torch" else find(name, *rest)
    sys.modules["torch"] = None
from fillmask_ui.errors import FillmaskError
from fillmask_ui.models import available_models, load_model
answers = []
for reference, options in jobs:
    steps = []
    try:
        model = load_model(reference, on_progress=steps.append, **options)
        s = model.signature
        answer = {"runtime": s.runtime, "sha256": s.sha256, "name": s.name, "notes": s.notes,
                  "vocabulary": model.vocabulary.size}
    except FillmaskError as error:
        answer = {"error": type(error).__name__, "message": str(error)}
    answer["steps"] = [(p.stage, p.done_bytes, p.total_bytes) for p in steps]
    answer["available"] = [(m.reference, m.where, m.runtimes) for m in available_models()]
    answers.append(answer)
print(json.dumps(answers))
"""


@pytest.fixture
def load_all(loopback_hub, tmp_path):
    """`load_all(jobs)`: what a fresh interpreter says to each (reference, options)."""

    def run(jobs, *, with_torch: bool = False, **environment: str) -> list[dict]:
        ran = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            input=json.dumps([jobs, with_torch]),
            env={**loopback_hub.environment(tmp_path / "hub"), **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        assert ran.stderr == ""
        (line,) = ran.stdout.splitlines()
        return json.loads(line)

    return run


@pytest.fixture
def load(load_all):
    """`load(reference, **options)` in a fresh interpreter, with one cache for the test."""

    def run(reference: str, environment: dict[str, str] | None = None, **options) -> dict:
        with_torch = options.get("runtime") == "torch"
        (answer,) = load_all([(reference, options)], with_torch=with_torch, **(environment or {}))
        return answer

    return run


@pytest.fixture
def bert(tiny_models) -> dict[str, bytes]:
    """Files of a repository as people publish them, with some that must not be fetched."""
    folder = tiny_models.folder("bert")
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    return {**files, "pytorch_model.bin": b"pickle", "README.md": b"# x", "modeling.py": b"1/0"}


@pytest.fixture
def outside(tiny_models, tmp_path) -> dict[str, bytes]:
    """`onnx/big.onnx` and the file beside it that holds its weights."""
    onnx.save(
        onnx.load(tiny_models.folder("bert") / "onnx" / "model.onnx"),
        tmp_path / "big.onnx",
        save_as_external_data=True,
        location="big.weights",
        size_threshold=0,
    )
    return {f"onnx/{name}": (tmp_path / name).read_bytes() for name in ("big.onnx", "big.weights")}


def put_into_cache(home: Path, name: str, files: Mapping[str, bytes]) -> None:
    """A snapshot as the client keeps it, of files that some program fetched."""
    repository = home / "hub" / f"models--{name.replace('/', '--')}"
    commit = hashlib.sha1(name.encode()).hexdigest()
    for path, content in {
        "refs/main": commit.encode(),
        **{f"snapshots/{commit}/{path}": content for path, content in files.items()},
    }.items():
        (repository / path).parent.mkdir(parents=True, exist_ok=True)
        (repository / path).write_bytes(content)


def fetched(hub) -> set[str]:
    """Paths of the files whose content was asked for."""
    gets = [r for r in hub.requests if r.startswith("GET") and "/resolve/" in r]
    return {r.split("/resolve/")[1].split("/", 1)[1] for r in gets}


def test_fetches_what_it_needs_and_says_how_far_it_is(load, loopback_hub, bert, tiny_models):
    commit = loopback_hub.add("org/tiny", bert)
    answer = load("org/tiny")
    assert answer["runtime"] == "onnx"
    assert answer["name"] == "org/tiny"
    assert answer["notes"] == [f"commit {commit}"]
    assert answer["sha256"] == load_model(tiny_models.folder("bert")).signature.sha256
    assert fetched(loopback_hub) == {
        "config.json", "tokenizer.json", "tokenizer_config.json", "onnx/model.onnx",
    }  # fmt: skip
    counted = [(done, total) for stage, done, total in answer["steps"] if done is not None]
    size = sum(len(bert[name]) for name in fetched(loopback_hub))
    assert [done for done, _ in counted] == sorted(done for done, _ in counted)
    assert counted[-1] == (size, size)
    assert ["org/tiny", "local cache", ["onnx"]] in answer["available"]


def test_torch_fetches_the_safetensors(load_all, loopback_hub, bert):
    loopback_hub.add("org/both", bert)
    loopback_hub.add("org/plain", {k: v for k, v in bert.items() if "onnx" not in k})
    jobs = [("org/both", {"runtime": "torch"}), ("org/plain", {})]
    assert [a["runtime"] for a in load_all(jobs, with_torch=True)] == ["torch", "torch"]
    assert "model.safetensors" in fetched(loopback_hub)
    assert not {"onnx/model.onnx", "pytorch_model.bin", "modeling.py"} & fetched(loopback_hub)


def test_safetensors_alone_without_pytorch(load, loopback_hub, bert):
    """Said before the weights are fetched."""
    loopback_hub.add("org/plain", {k: v for k, v in bert.items() if "onnx" not in k})
    answer = load("org/plain")
    assert answer["error"] == "ModelError"
    assert "pip install 'fillmask-ui[torch]'" in answer["message"]
    assert fetched(loopback_hub) == set()


def test_chosen_onnx_file_with_its_external_data(load, loopback_hub, bert, outside):
    loopback_hub.add("org/tiny", {**bert, **outside})
    answer = load("org/tiny", onnx_file="big")
    assert answer["runtime"] == "onnx"
    assert {"onnx/big.onnx", "onnx/big.weights"} <= fetched(loopback_hub)
    assert "onnx/model.onnx" not in fetched(loopback_hub)


def test_external_data_in_the_store_that_repositories_share(
    load, loopback_hub, bert, outside, tmp_path
):
    """Clients since 2.4 move what comes by Xet there and leave a link in the repository."""
    from huggingface_hub.utils import _shared_blobs as shared

    loopback_hub.add("org/tiny", {**bert, **outside})
    first = load("org/tiny", onnx_file="big")
    cache = tmp_path / "hub" / "hub"
    stored = {}
    for blob in list((cache / "models--org--tiny" / "blobs").iterdir()):
        content = blob.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        assert shared.publish_blob_to_shared_store(
            blob_path=str(blob),
            xet_hash=digest,
            cache_dir=str(cache),
            expected_size=len(content),
        )
        stored[content] = cache / "blobs" / digest[:2] / digest
    again = load("org/tiny", onnx_file="big", environment={"HF_HUB_OFFLINE": "1"})
    assert again["sha256"] == first["sha256"]

    (snapshot,) = (cache / "models--org--tiny" / "snapshots").iterdir()
    graph = snapshot / "onnx" / "big.onnx"
    weights = stored[outside["onnx/big.weights"]]
    source = read_graph(graph, snapshot, "org/tiny").source
    assert weights.parent.resolve().is_relative_to(source.weights_folder)
    # What another repository fetched is not for this one's graphs, by name.
    up = "/".join([".."] * 4)
    for location in (f"{up}/blobs/{weights.parent.name}/{weights.name}",):
        hostile = onnx.load(graph, load_external_data=False)
        for tensor in hostile.graph.initializer:
            for entry in tensor.external_data:
                if entry.key == "location":
                    entry.value = location
        path = snapshot / "onnx" / "hostile.onnx"
        path.write_bytes(hostile.SerializeToString())
        with pytest.raises(ModelError, match="outside the folder"):
            assert read_graph(path, snapshot, "org/tiny").source
    (cache / "blobs" / shared.SHARED_BLOBS_MARKER_NAME).unlink()
    with pytest.raises(ModelError, match="outside the folder"):
        assert read_graph(graph, snapshot, "org/tiny").source


def test_revision(load_all, loopback_hub, bert):
    loopback_hub.add("org/tiny", {"README.md": b"empty"})
    commit = loopback_hub.add("org/tiny", bert, revision="v1")
    tag, hexadecimal, main = load_all(
        [("org/tiny@v1", {}), (f"org/tiny@{commit}", {}), ("org/tiny", {})]
    )
    assert tag["notes"] == hexadecimal["notes"] == [f"commit {commit}"]
    assert "holds no weights" in main["message"]


def test_cached_model_loads_without_network(load, loopback_hub, bert):
    loopback_hub.add("org/tiny", bert)
    first = load("org/tiny")
    asked = len(loopback_hub.requests)
    offline = load("org/tiny", environment={"HF_HUB_OFFLINE": "1"})
    assert len(loopback_hub.requests) == asked
    assert offline["sha256"] == first["sha256"]
    loopback_hub.stop()
    gone = load("org/tiny")
    assert gone["sha256"] == first["sha256"]


@pytest.mark.parametrize(
    "environment", [{"HF_HUB_OFFLINE": "1"}, {"HF_ENDPOINT": "http://127.0.0.1:9"}]
)
def test_without_network_it_says_what_is_at_hand(load, loopback_hub, bert, environment):
    loopback_hub.add("org/cached", bert)
    load("org/cached")
    answer = load("org/other@v2", environment=environment)
    assert answer["error"] == "NetworkError"
    assert "org/other at v2" in answer["message"]
    assert "at hand without network: embedded, embedded:int8, org/cached" in answer["message"]
    why = "HF_HUB_OFFLINE" if "HF_HUB_OFFLINE" in environment else "cannot be reached"
    assert why in answer["message"]


def test_a_cache_that_lacks_what_is_asked_for(load_all, bert, tmp_path):
    """Other programs fetch a config alone; that says nothing about what the repository holds."""
    small = {name: bert[name] for name in ("config.json", "tokenizer.json")}
    graph = bert["onnx/model.onnx"]
    put_into_cache(tmp_path / "hub", "org/config", {"config.json": bert["config.json"]})
    put_into_cache(tmp_path / "hub", "org/onnx", {**small, "onnx/model.onnx": graph})
    put_into_cache(tmp_path / "hub", "org/many", {**small, "a.onnx": graph, "b.onnx": graph})
    path = tmp_path / "alone.onnx"
    path.write_bytes(graph)
    jobs = {
        "no weights": ("org/config", {}),
        "no tokenizer": (str(path), {"tokenizer": "org/config"}),
        "no safetensors": ("org/onnx", {"runtime": "torch"}),
        "another file": ("org/onnx", {"onnx_file": "small"}),
        "unclear": ("org/many", {}),
        "complete": ("org/onnx", {}),
    }
    answers = dict(zip(jobs, load_all([*jobs.values()], HF_HUB_OFFLINE="1"), strict=True))
    assert answers.pop("complete")["runtime"] == "onnx"
    assert "--onnx-file" in answers.pop("unclear")["message"]
    assert "unknown ONNX file" in answers.pop("another file")["message"]
    for answer in answers.values():
        assert answer["error"] == "NetworkError", answer
        assert "not complete in the local cache, and HF_HUB_OFFLINE" in answer["message"]


def test_connection_that_breaks_off(load, loopback_hub, bert):
    loopback_hub.add("org/tiny", bert)
    loopback_hub.cut_after = 20_000
    answer = load("org/tiny", environment={"HF_HUB_DOWNLOAD_TIMEOUT": "2"})
    assert answer["error"] == "NetworkError"
    assert "broke off" in answer["message"]
    loopback_hub.cut_after = None
    assert load("org/tiny")["runtime"] == "onnx"


def test_xet_storage_that_cannot_be_reached(load, loopback_hub, bert):
    """Its client raises a bare RuntimeError, after as many tries as it is told to make."""
    loopback_hub.add("org/tiny", bert)
    loopback_hub.xet_storage = "http://127.0.0.1:9"
    environment = {
        "HF_HUB_DISABLE_XET": "0",
        "HF_XET_CLIENT_RETRY_MAX_ATTEMPTS": "1",
        "HF_XET_CLIENT_RETRY_BASE_DELAY": "10ms",
    }
    answer = load("org/tiny", environment=environment)
    assert answer["error"] == "NetworkError"
    assert "org/tiny is not complete in the local cache" in answer["message"]
    assert "broke off" in answer["message"]


UNUSABLE = {
    "org/missing": ("ModelError", ["no org/missing on the hub", "at hand without network"]),
    "org/tiny@v9": ("ModelError", ["no revision 'v9'"]),
    "org/gated": ("ModelError", ["gated", "hf auth login"]),
    "org/pickle": ("ModelError", ["pytorch_model.bin", "can run any code"]),
    "org/empty": ("ModelError", ["holds no weights"]),
    "org/causal": ("ModelError", ["GPT2LMHeadModel", "fill-mask"]),
    "org/a--b": ("OptionError", ["is not a hub id"]),
    "org/many": ("OptionError", ["onnx/a.onnx, onnx/b.onnx", "--onnx-file"]),
}


def test_repositories_that_cannot_be_used(load_all, loopback_hub, bert):
    names = ("config.json", "tokenizer.json", "tokenizer_config.json")
    small = {name: bert[name] for name in names}
    config = {**json.loads(bert["config.json"]), "architectures": ["GPT2LMHeadModel"]}
    graph = bert["onnx/model.onnx"]
    loopback_hub.add("org/tiny", bert)
    loopback_hub.add("org/gated", bert, gated=True)
    loopback_hub.add("org/pickle", {**small, "pytorch_model.bin": b"pickle"})
    loopback_hub.add("org/empty", small)
    loopback_hub.add("org/causal", {**bert, "config.json": json.dumps(config).encode()})
    loopback_hub.add("org/many", {**small, "onnx/a.onnx": graph, "onnx/b.onnx": graph})
    answers = load_all([(reference, {}) for reference in UNUSABLE])
    for answer, (error, words) in zip(answers, UNUSABLE.values(), strict=True):
        assert answer.get("error") == error, answer
        assert all(word in answer["message"] for word in words), answer["message"]
    assert "pytorch_model.bin" not in fetched(loopback_hub)


def test_tokenizer_from_the_hub_for_an_onnx_file(load, loopback_hub, bert, tmp_path):
    loopback_hub.add("org/tiny", bert)
    path = tmp_path / "alone.onnx"
    path.write_bytes(bert["onnx/model.onnx"])
    answer = load(str(path), tokenizer="org/tiny")
    assert answer["runtime"] == "onnx"
    assert answer["vocabulary"] == 300
    assert fetched(loopback_hub) == {"config.json", "tokenizer.json", "tokenizer_config.json"}
    refused = load("org/tiny", tokenizer="embedded")
    assert refused["error"] == "OptionError"
    assert "name the model itself with --model" in refused["message"]


def test_nothing_runs_that_a_repository_brings_along(load, loopback_hub, bert, tmp_path):
    """`auto_map` asks transformers to import the repository's own code; it is never run."""
    trap = tmp_path / "ran"
    config = json.loads(bert["config.json"])
    config |= {
        "model_type": "own",
        "auto_map": {"AutoConfig": "modeling.C", "AutoModelForMaskedLM": "modeling.M"},
    }
    files = {k: v for k, v in bert.items() if "onnx" not in k}
    files["config.json"] = json.dumps(config).encode()
    files["modeling.py"] = f"open({str(trap)!r}, 'w')".encode()
    loopback_hub.add("org/own", files)
    answer = load("org/own", runtime="torch")
    assert answer["error"] == "ModelError"
    assert not Path(trap).exists()
