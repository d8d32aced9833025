"""Loaded models in daily use, and new runtimes: a class and a row of `RUNTIMES`."""

import numpy as np
import pytest
from tiny_models import batch_of

from fillmask_ui import EvaluationConfig, evaluate, fill, summarize
from fillmask_ui.batching import in_order
from fillmask_ui.models import load_model
from fillmask_ui.models import runtimes as table
from fillmask_ui.models.model_choice import cores
from fillmask_ui.models.runtime_model import RuntimeModel
from fillmask_ui.models.runtimes import RUNTIMES, Runtime, pick_weights
from fillmask_ui.onnx_tools.schemes import SCHEMES

runtimes = pytest.mark.parametrize("runtime", ["onnx", "torch"])


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
    assert load_model(threads=1).concurrent_calls == 1
    assert load_model().concurrent_calls == min(4, cores())


class BigramModel(RuntimeModel):
    """A stranger's runtime: logits [V, V] by the token to the left."""

    def _load(self, choice):
        self._hash(self.files.weights)
        self._table = np.load(self.files.weights[0])
        self.vocabulary = self._reading.result()
        self._width, self.memory_bytes = len(self._table), self._table.nbytes
        self._sign(
            ("numpy",),
            (self._width_note(),),
            device="cpu",
            precision="float32",
            parameters=self._table.size,
            size_bytes=self._table.nbytes,
        )

    def _run(self, batch, rows, cols):
        return self._table[batch.input_ids[rows, cols - 1]]

    def _run_states(self, batch, rows, cols):
        raise NotImplementedError


def test_a_strangers_runtime_is_a_class_and_a_row(copy, monkeypatch):
    row = Runtime("numpy", "numpy", f"{__name__}:BigramModel", r"bigrams\.npy", ("bigrams.npy",))
    monkeypatch.setitem(RUNTIMES, "bigram", row)
    folder = copy(onnx=False)
    (folder / "model.safetensors").unlink()
    table = np.random.default_rng(1).normal(size=(300, 300)).astype(np.float32)
    np.save(folder / "bigrams.npy", table)
    model = load_model(folder)
    assert model.signature.runtime == "bigram"
    (mask,) = fill(model, "the [MASK]", top_k=3).masks
    logits = table[model.vocabulary.encode("the").ids[1]]
    assert [candidate.token_id for candidate in mask.candidates] == list(np.argsort(-logits)[:3])
    rows = list(evaluate(model, ["The cat sat on the mat.", "A dog ran."], EvaluationConfig()))
    assert np.isfinite(summarize(rows).to_dict()["mean_nll_nats"])


def test_variants_are_the_files_of_the_schemes():
    """`models` names them itself, as the schemes would import onnx whenever a model is chosen."""
    assert {f"onnx/{scheme.file}" for scheme in SCHEMES.values()} <= {*RUNTIMES["onnx"].reduced}


# As transformers.js names its files, of which `_quantized` is what it takes by default in a browser
# (DEFAULT_DTYPE_SUFFIX_MAPPING of its src/utils/dtypes.js, version 3).
NEAREST_FIRST = [
    *("onnx/model.onnx", "model.safetensors", "onnx/model_fp16.onnx", "onnx/model_quantized.onnx"),
    *("onnx/model_int8.onnx", "onnx/model_uint8.onnx", "onnx/model_q4.onnx"),
    *("onnx/model_q4f16.onnx", "onnx/model_bnb4.onnx"),
]


def test_auto_takes_the_file_nearest_to_full_precision(monkeypatch):
    for start, expected in enumerate(NEAREST_FIRST):
        assert pick_weights("m", sorted(NEAREST_FIRST[start:]), "auto", None).file == expected
    names = ["model.safetensors", "model_quantized.onnx", "onnx/model_q4.onnx"]
    assert pick_weights("m", names, "onnx", None).file == "model_quantized.onnx"
    find = table.find_spec
    monkeypatch.setattr(table, "find_spec", lambda name: None if name == "torch" else find(name))
    assert pick_weights("m", names, "auto", None) == ("onnx", "model_quantized.onnx")
    assert pick_weights("m", names[:1], "auto", None) == ("torch", "model.safetensors")
