"""A runtime is a class and a row of `RUNTIMES`; execution providers are choices of one."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
from tiny_models import batch_of

from fillmask_ui import EvaluationConfig, evaluate, fill, summarize
from fillmask_ui.errors import OptionError
from fillmask_ui.models import load_model
from fillmask_ui.models.runtime_model import RuntimeModel
from fillmask_ui.models.runtimes import RUNTIMES, Runtime
from fillmask_ui.onnx_tools.schemes import SCHEMES


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
    assert [own.token_id for own in mask.candidates] == list(np.argsort(-logits)[:3])
    rows = list(evaluate(model, ["The cat sat on the mat.", "A dog ran."], EvaluationConfig()))
    assert np.isfinite(summarize(rows).to_dict()["mean_nll_nats"])


def test_variants_are_the_files_of_the_schemes():
    """`models` names them itself, as the schemes would import onnx whenever a model is chosen."""
    assert {*RUNTIMES["onnx"].variants} == {f"onnx/{own.file}" for own in SCHEMES.values()}


def test_every_provider_of_onnxruntime_is_a_choice(tiny_models):
    folder = tiny_models.folder("bert")
    usual = load_model(folder)
    batch = batch_of(usual.vocabulary, ["The cat [MASK] on the [MASK].", "[MASK] a"])
    for provider in ort.get_available_providers():
        for name in (provider, provider.removesuffix("ExecutionProvider").lower()):
            model = load_model(folder, provider=name)
            assert model.signature.device == provider
            np.testing.assert_allclose(model.logits_at(*batch), usual.logits_at(*batch), atol=1e-4)
    with pytest.raises(OptionError, match=r"unknown provider 'Cuda'; known: .*CPUExecution"):
        load_model(folder, provider="Cuda")
