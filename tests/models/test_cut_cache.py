"""Graphs cut to the asked positions are kept in the user's cache, and only used if they agree."""

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from recorded.program import ran
from tiny_models import batch_of

from fillmask_ui.models import load_model
from fillmask_ui.models.runtime_model import FULL_LOGITS
from fillmask_ui.onnx_tools.asked_positions import gather_asked


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch) -> Path:
    """An empty cache folder."""
    monkeypatch.setenv("FILLMASK_UI_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def entries(cache: Path) -> list[Path]:
    return [path for path in cache.glob("graphs/*") if path.is_file()]


def test_a_cut_graph_that_disagrees_is_not_used(tiny_models, monkeypatch, own_cache, agrees):
    def wrong(model, logits):
        cut = gather_asked(model, logits)
        for node in cut.graph.node:
            if node.op_type == "Erf":
                node.op_type = "Tanh"
        return cut

    monkeypatch.setattr("fillmask_ui.models.onnx_graph.gather_asked", wrong)
    model = load_model(tiny_models.folder("bert"))
    assert FULL_LOGITS in model.signature.notes
    agrees(model)
    assert entries(own_cache) == []


def test_the_second_load_reads_the_kept_graph(tiny_models, own_cache, agrees):
    """Without importing what parses the file; the weights stay where they are."""
    folder = tiny_models.folder("bert")
    load_model(folder)
    script = (
        "import sys; from fillmask_ui.models import load_model; "
        "model = load_model(sys.argv[1]); print('onnx' in sys.modules, model.max_tokens)"
    )
    done = ran(sys.executable, "-c", script, folder)
    assert done.stdout.split()[0] == "False", done.stderr
    (entry,) = entries(own_cache)
    whole = entry.read_bytes()
    content = whole[32:].partition(b"\n")[2]
    tensors = onnx.ModelProto.FromString(content).graph.initializer
    large = [tensor for tensor in tensors if np.prod(tensor.dims) > 4096]
    assert large and {tensor.data_location for tensor in large} == {TensorProto.EXTERNAL}
    assert len(content) < (folder / "onnx" / "model.onnx").stat().st_size / 2
    for length in (31, -1):  # a torn entry is made again
        entry.write_bytes(whole[:length])
        agrees(load_model(folder))
        assert entry.read_bytes() == whole


def test_a_cache_that_cannot_be_written(tiny_models, tmp_path, monkeypatch, agrees):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FILLMASK_UI_CACHE", str(tmp_path / "file" / "cache"))
    agrees(load_model(tiny_models.folder("bert")))


def test_the_kept_graph_follows_the_weights(variant, own_cache):
    """The same graph beside other weights: those are run, not the ones it was cut with."""

    def change(source: Path, target: Path) -> None:
        onnx.save(onnx.load(source), target, save_as_external_data=True, location="model.onnx.data")

    folder, first_logits = variant(change), []
    data = folder / "model.onnx.data"
    for factor in (1, 1.5):
        weights = np.frombuffer(data.read_bytes(), np.float32) * np.float32(factor)
        data.write_bytes(weights.tobytes())
        models = [load_model(folder) for _ in range(2)]
        batch = batch_of(models[0].vocabulary, ["The cat [MASK] on the mat."])
        first, again = (model.logits_at(*batch) for model in models)
        np.testing.assert_array_equal(first, again)
        first_logits.append(first)
    assert np.abs(first_logits[0] - first_logits[1]).max() > 0.1
    assert len(entries(own_cache)) == 1
