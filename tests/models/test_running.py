"""Loaded models in daily use: silent, safe to call from many threads, clear when they fail."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from tiny_models import batch_of

from fillmask_ui.batching import in_order
from fillmask_ui.errors import ModelError
from fillmask_ui.models import load_model
from fillmask_ui.models.runtime_model import cores


@pytest.mark.parametrize("runtime", ["onnx", "torch"])
def test_loading_says_nothing(tiny_models, runtime, capfd):
    load_model(tiny_models.folder("bert"), runtime=runtime)
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


@pytest.mark.parametrize("runtime", ["onnx", "torch"])
def test_many_threads_at_once(loaded, runtime):
    model = loaded("bert", runtime)
    texts = [f"{'the ' * n}[MASK] cat" for n in range(8)]
    wanted = [model.logits_at(*batch_of(model.vocabulary, [text])) for text in texts]
    wrong: list[str] = []

    def work(start: int) -> None:
        for step in range(25):
            number = (start + step) % len(texts)
            got = model.logits_at(*batch_of(model.vocabulary, [texts[number]]))
            if not np.allclose(got, wanted[number], atol=1e-4):
                wrong.append(texts[number])

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize(
    ("said", "shown"), [("", "RuntimeError"), ("shapes differ\n  at line 3", "shapes differ")]
)
def test_an_error_of_the_runtime_is_one_line(tiny_models, monkeypatch, said, shown):
    """Whatever its message, even none."""

    def fail(**_):
        raise RuntimeError(said)

    model = load_model(tiny_models.folder("bert"), runtime="torch")
    monkeypatch.setattr(model, "_model", fail)
    with pytest.raises(ModelError, match=rf"failed on 1 x 4 tokens: {shown}$"):
        model.logits_at(*batch_of(model.vocabulary, ["a [MASK]"]))


def test_torch_threads_are_shared_among_the_threads_that_call(loaded, monkeypatch):
    import torch

    usual = torch.get_num_threads()
    model = loaded("bert", "torch")
    monkeypatch.setattr(model, "threads", 4)
    batch = batch_of(model.vocabulary, ["a [MASK] cat"])
    expected = model.logits_at(*batch)
    before = torch.get_num_threads()
    assert before == 4
    for workers, each in ((2, 2), (4, 1), (3, 1)):

        def ask(_):
            np.testing.assert_allclose(model.logits_at(*batch), expected, atol=1e-5)
            return torch.get_num_threads()

        assert set(in_order(ask, range(12), workers)) == {each}
        assert torch.get_num_threads() == before
    model.threads = 1
    model.logits_at(*batch)
    assert torch.get_num_threads() == 1
    torch.set_num_threads(usual)


def test_calls_at_a_time_follow_the_threads():
    assert load_model(threads=1).concurrent_calls == 1
    assert load_model().concurrent_calls == min(4, cores())
