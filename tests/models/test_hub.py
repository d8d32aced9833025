"""Models from a hub on 127.0.0.1, with the real client in its own process.

The client reads its address and cache folder when it is imported, so scripts run in fresh
interpreters whose environment points there, with many references each.
"""

import hashlib
import json
from pathlib import Path

import onnx
import pytest
from tiny_tokenizers import PHOBERT

from fillmask_ui.errors import ModelError, how_to_install
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
    answers.append(answer)
available = [(m.reference, m.where, m.runtimes) for m in available_models()]
print(json.dumps([answers, available]))
"""
NAMES = ("config.json", "tokenizer.json", "tokenizer_config.json")


@pytest.fixture
def load(loopback_hub, tmp_path):
    """`load(*jobs, **environment)`: what a fresh interpreter says to each (reference, options)."""

    def run(*jobs, torch: bool = False, **environment: str) -> list[dict]:
        pairs = [(job, {}) if isinstance(job, str) else job for job in jobs]
        request = json.dumps([pairs, torch])
        ran = loopback_hub.run(tmp_path / "hub", "-c", SCRIPT, stdin=request, **environment)
        assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr
        answers, run.available = json.loads(ran.stdout)
        return answers

    return run


@pytest.fixture
def bert(tiny_models) -> dict[str, bytes]:
    """Files of a repository as people publish them, with some that must not be fetched."""
    folder = tiny_models.folder("bert")
    paths = [path for path in folder.rglob("*") if path.is_file()]
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    return {**files, "pytorch_model.bin": b"pickle", "README.md": b"# x", "modeling.py": b"1/0"}


@pytest.fixture
def outside(tiny_models, tmp_path) -> dict[str, bytes]:
    """`onnx/big.onnx` and the file beside it that holds its weights."""
    model = onnx.load(tiny_models.folder("bert") / "onnx" / "model.onnx")
    options = {"save_as_external_data": True, "location": "big.weights", "size_threshold": 0}
    onnx.save(model, tmp_path / "big.onnx", **options)
    return {f"onnx/{name}": (tmp_path / name).read_bytes() for name in ("big.onnx", "big.weights")}


def fetched(hub, name: str) -> set[str]:
    """Paths of the files of a repository whose content was asked for."""
    start = f"GET /{name}/resolve/"
    gets = [r.removeprefix(start) for r in hub.requests if r.startswith(start)]
    return {r.split("/", 1)[1] for r in gets}


UNUSABLE = {
    "org/missing": ("ModelError", ["no org/missing on the hub", "available offline"]),
    "org/tiny@v9": ("ModelError", ["no revision 'v9'"]),
    "org/gated": ("ModelError", ["gated", "hf auth login"]),
    "org/pickle": ("ModelError", ["pytorch_model.bin", "can run any code"]),
    "org/empty": ("ModelError", ["holds no weights"]),
    "org/causal": ("ModelError", ["GPT2LMHeadModel", "fill-mask"]),
    "org/plain": ("ModelError", [how_to_install("torch")]),
    "org/a--b": ("OptionError", ["is not a hub id"]),
    "org/many": ("OptionError", ["onnx/a.onnx, onnx/b.onnx", "--onnx-file"]),
}


def test_what_is_fetched_and_what_is_refused(
    load, loopback_hub, bert, outside, tiny_models, tmp_path
):
    small, graph = {name: bert[name] for name in NAMES}, bert["onnx/model.onnx"]
    config = {**json.loads(bert["config.json"]), "architectures": ["GPT2LMHeadModel"]}
    commit = loopback_hub.add("org/tiny", bert)
    loopback_hub.add("org/big", {**bert, **outside})
    loopback_hub.add("org/tagged", {"README.md": b"empty"})
    tagged = loopback_hub.add("org/tagged", bert, revision="v1")
    loopback_hub.add("org/words", bert)
    loopback_hub.add("org/gated", bert, gated=True)
    loopback_hub.add("org/pickle", {**small, "pytorch_model.bin": b"pickle"})
    loopback_hub.add("org/empty", small)
    loopback_hub.add("org/plain", {k: v for k, v in bert.items() if "onnx" not in k})
    loopback_hub.add("org/causal", {**bert, "config.json": json.dumps(config).encode()})
    loopback_hub.add("org/many", {**small, "onnx/a.onnx": graph, "onnx/b.onnx": graph})
    path = tmp_path / "alone.onnx"
    path.write_bytes(graph)
    tiny, big, tag, by_commit, main, alone, refused, *unusable = load(
        "org/tiny",
        ("org/big", {"onnx_file": "big"}),
        "org/tagged@v1",
        f"org/tagged@{tagged}",
        "org/tagged",
        (str(path), {"tokenizer": "org/words"}),
        ("org/tiny", {"tokenizer": "embedded"}),
        *UNUSABLE,
    )
    assert (tiny["runtime"], tiny["name"], tiny["notes"]) == (
        "onnx", "org/tiny", [f"commit {commit}"],
    )  # fmt: skip
    assert tiny["sha256"] == load_model(tiny_models.folder("bert")).signature.sha256
    assert fetched(loopback_hub, "org/tiny") == {*NAMES, "onnx/model.onnx"}
    counted = [(done, total) for stage, done, total in tiny["steps"] if done is not None]
    size = sum(len(bert[name]) for name in fetched(loopback_hub, "org/tiny"))
    assert [done for done, _ in counted] == sorted(done for done, _ in counted)
    assert counted[-1] == (size, size)
    assert ["org/tiny", "local cache", ["onnx"]] in load.available
    assert big["runtime"] == "onnx"
    assert fetched(loopback_hub, "org/big") == {*NAMES, *outside}
    assert tag["notes"] == by_commit["notes"] == [f"commit {tagged}"]
    assert "holds no weights" in main["message"]
    assert (alone["runtime"], alone["vocabulary"]) == ("onnx", 300)
    assert fetched(loopback_hub, "org/words") == {*NAMES}
    assert refused["error"] == "OptionError"
    assert "name the model itself with --model" in refused["message"]
    for answer, (error, words) in zip(unusable, UNUSABLE.values(), strict=True):
        assert answer.get("error") == error, answer
        assert all(word in answer["message"] for word in words), answer["message"]
    assert fetched(loopback_hub, "org/pickle") == fetched(loopback_hub, "org/plain") == set()


def test_pytorch_fetches_safetensors_and_runs_no_code_of_a_repository(
    load, loopback_hub, bert, tmp_path
):
    """`auto_map` asks transformers to import the repository's own code; it is never run."""
    trap = tmp_path / "ran"
    auto_map = {"AutoConfig": "modeling.C", "AutoModelForMaskedLM": "modeling.M"}
    config = json.loads(bert["config.json"]) | {"model_type": "own", "auto_map": auto_map}
    code = f"open({str(trap)!r}, 'w')".encode()
    loopback_hub.add("org/both", bert)
    loopback_hub.add("org/plain", {k: v for k, v in bert.items() if "onnx" not in k})
    files = {**bert, "config.json": json.dumps(config).encode(), "modeling.py": code}
    loopback_hub.add("org/own", files)
    options = {"runtime": "torch"}
    with_onnx, plain, refused = load(
        ("org/both", options), "org/plain", ("org/own", options), torch=True
    )
    assert (with_onnx["runtime"], plain["runtime"]) == ("torch", "torch")
    for name in ("org/both", "org/plain"):
        assert fetched(loopback_hub, name) == {*NAMES, "model.safetensors"}
    assert refused["error"] == "ModelError"
    assert not Path(trap).exists()


def test_a_cached_model_loads_without_network(load, loopback_hub, bert):
    loopback_hub.add("org/tiny", bert)
    (first,) = load("org/tiny")
    request_count = len(loopback_hub.requests)
    offline, pinned = load("org/tiny", "org/other@v2", HF_HUB_OFFLINE="1")
    assert len(loopback_hub.requests) == request_count
    loopback_hub.stop()
    gone, unreachable = load("org/tiny", "org/other@v2")
    assert gone["sha256"] == offline["sha256"] == first["sha256"]
    for answer, why in ((pinned, "HF_HUB_OFFLINE"), (unreachable, "cannot be reached")):
        assert answer["error"] == "NetworkError"
        hint = "available offline: embedded, embedded:int8, org/tiny"
        assert all(fragment in answer["message"] for fragment in ("org/other at v2", hint, why))


def test_files_are_fetched_that_the_tokenizer_class_names(load, loopback_hub, bert, tmp_path):
    """`vocab_files_names` of PhobertTokenizer in transformers has bpe.codes."""
    words = {name: content.encode() for name, content in PHOBERT.items()}
    files = {**bert, **words, "config.json": bert["config.json"], "notes.codes": b"x"}
    del files["tokenizer.json"]
    loopback_hub.add("org/viet", files)
    path = tmp_path / "alone.onnx"
    path.write_bytes(bert["onnx/model.onnx"])
    answer, alone = load("org/viet", (str(path), {"tokenizer": "org/viet"}))
    assert answer["vocabulary"] == alone["vocabulary"] == 9  # 5 special tokens, 4 of vocab.txt
    assert fetched(loopback_hub, "org/viet") == {"onnx/model.onnx", *PHOBERT}
    (offline,) = load("org/viet", HF_HUB_OFFLINE="1")
    assert offline["sha256"] == answer["sha256"]


def test_connections_that_break_off(load, loopback_hub, bert):
    """The client of Xet raises a bare RuntimeError, after as many tries as it is told to make."""
    loopback_hub.add("org/tiny", bert)
    loopback_hub.cut_after = 20_000
    xet = {
        "HF_HUB_DISABLE_XET": "0",
        "HF_XET_CLIENT_RETRY_MAX_ATTEMPTS": "1",
        "HF_XET_CLIENT_RETRY_BASE_DELAY": "10ms",
    }
    answers = load("org/tiny", HF_HUB_DOWNLOAD_TIMEOUT="2")
    loopback_hub.cut_after, loopback_hub.xet_storage = None, "http://127.0.0.1:9"
    answers += load("org/tiny", **xet)
    for answer in answers:
        assert answer["error"] == "NetworkError"
        assert "org/tiny is not complete in the local cache" in answer["message"]
        assert "broke off" in answer["message"]
    loopback_hub.xet_storage = ""
    assert load("org/tiny")[0]["runtime"] == "onnx"


def test_external_data_in_the_store_that_repositories_share(
    load, loopback_hub, bert, outside, tmp_path
):
    """Clients since 2.4 move what comes by Xet there and leave a link in the repository."""
    from huggingface_hub.utils import _shared_blobs as shared

    loopback_hub.add("org/tiny", {**bert, **outside})
    job = ("org/tiny", {"onnx_file": "big"})
    (first,) = load(job)
    cache = tmp_path / "hub" / "hub"
    stored = {}
    for blob in list((cache / "models--org--tiny" / "blobs").iterdir()):
        content = blob.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        assert shared.publish_blob_to_shared_store(
            blob_path=str(blob), xet_hash=digest, cache_dir=str(cache), expected_size=len(content)
        )
        stored[content] = cache / "blobs" / digest[:2] / digest
    (again,) = load(job, HF_HUB_OFFLINE="1")
    assert again["sha256"] == first["sha256"]

    (snapshot,) = (cache / "models--org--tiny" / "snapshots").iterdir()
    graph = snapshot / "onnx" / "big.onnx"
    weights = stored[outside["onnx/big.weights"]]
    source = read_graph(graph, snapshot, "org/tiny")
    assert weights.parent.resolve().is_relative_to(source.files.folder)
    # What another repository fetched is not for this one's graphs, by name.
    hostile = onnx.load(graph, load_external_data=False)
    for tensor in hostile.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                up = "/".join([".."] * 4)
                entry.value = f"{up}/blobs/{weights.parent.name}/{weights.name}"
    path = snapshot / "onnx" / "hostile.onnx"
    path.write_bytes(hostile.SerializeToString())
    with pytest.raises(ModelError, match="outside the folder"):
        read_graph(path, snapshot, "org/tiny")
    (cache / "blobs" / shared.SHARED_BLOBS_MARKER_NAME).unlink()
    with pytest.raises(ModelError, match="outside the folder"):
        read_graph(graph, snapshot, "org/tiny")
