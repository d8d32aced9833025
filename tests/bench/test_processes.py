"""Contenders in processes of their own, and who takes part."""

import os
import signal
import sys

import numpy as np
import pytest

from fillmask_ui.bench.contender_process import ContenderProcess
from fillmask_ui.bench.contenders import BenchConfig, lineup
from fillmask_ui.bench.peers import PEERS, installed_peers
from fillmask_ui.bench.rounds import PRODUCTS
from fillmask_ui.errors import ModelError, OptionError


def test_a_process_answers_has_a_memory_of_its_own_and_says_why_it_ended():
    ballast = np.ones(400_000_000, np.uint8)
    products = ContenderProcess(PRODUCTS)
    try:
        assert products.ask("peak_bytes") < ballast.nbytes
        assert products.ask("product", library="numpy", shape=(8, 8, 8)).amount == 1024
        assert products.loaded["seconds"] > 0
        with pytest.raises(ModelError, match=r"AttributeError: .*no attribute 'nonsense'"):
            products.ask("nonsense")
        os.kill(products._process.pid, signal.SIGKILL)
        for _ in range(2):
            with pytest.raises(ModelError, match="matrix products ended with code -9"):
                products.ask("peak_bytes")
    finally:
        products.close()


def test_peers_share_the_weights_of_the_models(tiny_models, monkeypatch):
    own = ["embedded", "embedded:int8"]
    assert [one.name for one in lineup(BenchConfig()).contenders] == own
    found = lineup(BenchConfig(peers=True))
    own += ["embedded:torch", "embedded:torch bfloat16"]
    peers = [peer.name for peer in installed_peers()]
    assert [one.name for one in found.contenders] == [*own, *peers]
    assert {"fill-mask pipeline", "published loop", "Trainer-style loop"} <= set(peers)
    assert set(PEERS) - set(peers) <= {"minicons"}
    assert len({one.folder for one in found.contenders}) == 1
    assert not found.notes
    monkeypatch.setitem(sys.modules, "minicons", None)
    assert "minicons" not in [peer.name for peer in installed_peers()]
    # Several weights have peers of their own; the first runs on PyTorch already.
    folder, other = map(str, (tiny_models.without_onnx("bert"), tiny_models.folder("roberta")))
    names = [one.name for one in lineup(BenchConfig((folder, other), peers=True)).contenders]
    on_torch = [f"{folder}:torch bfloat16", f"{other}:torch", f"{other}:torch bfloat16"]
    assert names[:5] == [folder, other, *on_torch]
    assert {f"published loop ({folder})", f"published loop ({other})"} <= set(names)


def test_without_torch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(OptionError, match=r"pip install 'fillmask-ui\[torch\]'"):
        BenchConfig(peers=True)
