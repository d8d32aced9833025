"""Contenders in processes of their own, and who takes part."""

import sys

import numpy as np
import pytest
from tiny_models import SENTENCES

from fillmask_ui.bench.config import BenchConfig
from fillmask_ui.bench.peers import PEERS, installed_peers
from fillmask_ui.bench.process import Worker
from fillmask_ui.bench.subjects import Subject, lineup
from fillmask_ui.errors import FillmaskError, ModelError, OptionError


@pytest.fixture
def products():
    worker = Worker("products", {"kind": "products"})
    yield worker
    worker.close()


def test_a_process_answers_and_has_a_memory_of_its_own(products):
    ballast = np.ones(400_000_000, np.uint8)
    fresh = Worker("products", {"kind": "products"})
    try:
        assert fresh.ask("peak_bytes") < ballast.nbytes
    finally:
        fresh.close()
    timing = products.ask("product", library="numpy", shape=(8, 8, 8), runs=3)
    assert timing["amount"] == 1024
    assert len(timing["seconds"]) == 3
    assert products.loaded["seconds"] > 0


def test_a_process_that_ends_is_an_error_with_its_reason(products):
    with pytest.raises(ModelError, match=r"products ended with code 1.*no attribute 'nonsense'"):
        products.ask("nonsense")
    with pytest.raises(ModelError, match="products ended"):
        products.ask("peak_bytes")


def test_what_loading_says_arrives(tmp_path):
    subject = Subject("empty", "own", tmp_path, choice=lineup(BenchConfig()).subjects[0].choice)
    request = subject.request(None)
    request["choice"]["reference"] = str(tmp_path)
    with pytest.raises(ModelError, match="holds no weights"):
        Worker("empty", request)


def test_a_peer_measures_in_its_process(tiny_models):
    folder = tiny_models.folder("bert")
    worker = Worker("published loop", Subject("it", "published loop", folder).request(64))
    try:
        timing = worker.ask("evaluation", texts=SENTENCES[:10], metric="cross-entropy")
    finally:
        worker.close()
    assert timing["loss"] > 0
    assert timing["operations"] > 0


def test_without_peers_the_models_asked_for():
    names = [subject.name for subject in lineup(BenchConfig()).subjects]
    assert names == ["embedded", "embedded:int8"]


def test_peers_share_the_weights_of_the_models():
    found = lineup(BenchConfig(peers=True))
    own = ["embedded", "embedded:int8", "embedded:torch", "embedded:torch bfloat16"]
    peers = [peer.name for peer in installed_peers()]
    assert [subject.name for subject in found.subjects] == [*own, *peers]
    assert {"fill-mask pipeline", "published loop", "Trainer-style loop"} <= set(peers)
    assert len({subject.folder for subject in found.subjects}) == 1
    assert not found.notes


def test_several_weights_have_peers_of_their_own(tiny_models):
    folder, other = tiny_models.without_onnx("bert"), tiny_models.folder("roberta")
    names = [s.name for s in lineup(BenchConfig((str(folder), str(other)), peers=True)).subjects]
    # The first runs on PyTorch already.
    assert names[:5] == [
        str(folder),
        str(other),
        f"{folder}:torch bfloat16",
        f"{other}:torch",
        f"{other}:torch bfloat16",
    ]
    assert f"published loop ({folder})" in names
    assert f"published loop ({other})" in names


def test_a_model_without_weights_for_torch_has_no_peers(tiny_models, tmp_path):
    for path in tiny_models.folder("bert").rglob("*"):
        if path.is_file() and path.suffix != ".safetensors":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    found = lineup(BenchConfig((str(tmp_path / "model.onnx"),), peers=True))
    assert len(found.subjects) == 1
    assert "model.onnx has no model.safetensors beside it" in found.notes[0]


def test_minicons_takes_part_where_it_is(monkeypatch):
    assert set(PEERS) - {peer.name for peer in installed_peers()} <= {"minicons"}
    monkeypatch.setitem(sys.modules, "minicons", None)
    assert "minicons" not in [peer.name for peer in installed_peers()]


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"models": ("no/such/thing",)}, "no such model"),
        ({"models": ("embedded:int3",)}, "unknown variant"),
        ({"samples": 0}, "samples must be at least 1"),
    ],
)
def test_wrong_input(choices, message):
    with pytest.raises(FillmaskError, match=message):
        lineup(BenchConfig(**choices))


def test_peers_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(OptionError, match=r"pip install 'fillmask-ui\[torch\]'"):
        BenchConfig(peers=True)
