"""Contenders in processes of their own, and who takes part."""

import sys

import numpy as np
import pytest
from tiny_models import SENTENCES

from fillmask_ui.bench.contender_process import ContenderProcess
from fillmask_ui.bench.contenders import BenchConfig, Contender, lineup
from fillmask_ui.bench.peers import PEERS, installed_peers
from fillmask_ui.errors import FillmaskError, ModelError, OptionError


def test_a_process_answers_has_a_memory_of_its_own_and_says_why_it_ended():
    ballast = np.ones(400_000_000, np.uint8)
    products = ContenderProcess("products", {"kind": "products"})
    try:
        assert products.ask("peak_bytes") < ballast.nbytes
        timing = products.ask("product", library="numpy", shape=(8, 8, 8))
        assert timing["amount"] == 1024
        assert products.loaded["seconds"] > 0
        with pytest.raises(ModelError, match=r"products ended with code 1.*attribute 'nonsense'"):
            products.ask("nonsense")
        with pytest.raises(ModelError, match="products ended"):
            products.ask("peak_bytes")
    finally:
        products.close()


def test_what_loading_says_arrives(tmp_path):
    own = lineup(BenchConfig()).contenders[0]
    request = Contender("empty", "own", tmp_path, choice=own.choice).request(None)
    request["choice"]["reference"] = str(tmp_path)
    with pytest.raises(ModelError, match="holds no weights"):
        ContenderProcess("empty", request)


def test_a_peer_measures_in_its_process(tiny_models):
    request = Contender("it", "published loop", tiny_models.folder("bert")).request(64)
    process = ContenderProcess("published loop", request)
    try:
        timing = process.ask("evaluation", texts=SENTENCES[:10], metric="cross-entropy")
    finally:
        process.close()
    assert timing["loss"] > 0
    assert timing["operations"] > 0


def test_peers_share_the_weights_of_the_models():
    own = ["embedded", "embedded:int8"]
    assert [one.name for one in lineup(BenchConfig()).contenders] == own
    found = lineup(BenchConfig(peers=True))
    own += ["embedded:torch", "embedded:torch bfloat16"]
    peers = [peer.name for peer in installed_peers()]
    assert [one.name for one in found.contenders] == [*own, *peers]
    assert {"fill-mask pipeline", "published loop", "Trainer-style loop"} <= set(peers)
    assert len({one.folder for one in found.contenders}) == 1
    assert not found.notes


def test_several_weights_have_peers_of_their_own(tiny_models):
    folder, other = tiny_models.without_onnx("bert"), tiny_models.folder("roberta")
    config = BenchConfig((str(folder), str(other)), peers=True)
    names = [one.name for one in lineup(config).contenders]
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
    assert len(found.contenders) == 1
    assert "model.onnx has no model.safetensors beside it" in found.notes[0]


def test_minicons_takes_part_where_it_is(monkeypatch):
    assert set(PEERS) - {peer.name for peer in installed_peers()} <= {"minicons"}
    monkeypatch.setitem(sys.modules, "minicons", None)
    assert "minicons" not in [peer.name for peer in installed_peers()]


def test_wrong_input_is_told(monkeypatch):
    for choices, message in (
        ({"models": ("no/such/thing",)}, "no such model"),
        ({"models": ("embedded:int3",)}, "unknown variant"),
        ({"samples": 0}, "samples must be at least 1"),
    ):
        with pytest.raises(FillmaskError, match=message):
            lineup(BenchConfig(**choices))
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(OptionError, match=r"pip install 'fillmask-ui\[torch\]'"):
        BenchConfig(peers=True)
