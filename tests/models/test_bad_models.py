"""Models that would give wrong numbers are refused, and those that only look odd are not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from safetensors.numpy import load_file, save_file
from tiny_models import batch_of, export_onnx

from fillmask_ui.errors import ModelError, ModelOutputError
from fillmask_ui.files import asset
from fillmask_ui.models import available_models, hub_models, load_model


def edit_json(path: Path, **changes: object) -> None:
    values = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**values, **changes}), encoding="utf-8")


def test_a_graph_of_fewer_positions_than_its_config_says(copy):
    folder = copy()
    edit_json(folder / "config.json", max_position_embeddings=10**6)
    edit_json(folder / "tokenizer_config.json", model_max_length=10**6)
    model = load_model(folder, runtime="onnx")
    with pytest.raises(ModelError, match=r"failed on 1 x 603 tokens"):
        model.logits_at(*batch_of(model.vocabulary, ["the " * 600 + "[MASK]"]))


def test_nan_at_one_position_is_said(copy):
    """Only the vector of position 20 is broken: short texts work, longer ones say NaN."""
    folder = copy()
    path = folder / "model.safetensors"
    weights = load_file(path)
    weights["bert.embeddings.position_embeddings.weight"][20] = np.nan
    save_file(weights, path, metadata={"format": "pt"})
    shutil.rmtree(folder / "onnx")
    export_onnx(folder)
    for runtime in ("onnx", "torch"):
        model = load_model(folder, runtime=runtime)
        assert np.isfinite(model.logits_at(*batch_of(model.vocabulary, ["a [MASK]"]))).all()
        with pytest.raises(ModelOutputError, match="returned NaN at 1 of 1 positions"):
            model.logits_at(*batch_of(model.vocabulary, ["a " * 25 + "[MASK]"]))


@pytest.mark.parametrize("runtime", ["onnx", "torch"])
def test_tokenizer_larger_than_the_model(copy, tiny_models, runtime):
    """RoBERTa's tokenizer has 420 tokens, this BERT 300 logits: both sizes are said."""
    folder = copy()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    with pytest.raises(ModelError, match="420 tokens, the model has logits for 300"):
        load_model(folder, tokenizer=tiny_models.folder("roberta"), runtime=runtime)


@pytest.mark.parametrize("runtime", ["onnx", "torch"])
def test_model_wider_than_the_tokenizer_is_fine(tiny_models, tmp_path, runtime):
    """As DeBERTa-v3 and many ESM-sized vocabularies are; the signature says so."""
    from transformers import AutoModelForMaskedLM

    source = tiny_models.folder("bert", onnx=False)
    model = AutoModelForMaskedLM.from_pretrained(source)
    model.resize_token_embeddings(320)
    for path in source.glob("*.json"):
        shutil.copy(path, tmp_path)
    model.save_pretrained(tmp_path)
    if runtime == "onnx":
        export_onnx(tmp_path)
    loaded = load_model(tmp_path, runtime=runtime)
    assert loaded.signature.vocabulary_size == 320
    assert loaded.vocabulary.size == 300
    assert "320 logits" in loaded.signature.notes[0]
    assert loaded.vocabulary.token(310) == loaded.vocabulary.word(310) == "[310]"
    logits = loaded.logits_at(*batch_of(loaded.vocabulary, ["a [MASK]"]))
    assert logits.shape == (1, 320)


@pytest.mark.parametrize("moved", ["offset", "header", "header of a cached graph"])
def test_weights_that_lie_elsewhere_than_the_graph_says(tmp_path, monkeypatch, moved):
    """Else ONNX Runtime would read numbers across two tensors."""
    monkeypatch.setenv("FILLMASK_UI_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "m"
    shutil.copytree(asset("model"), folder, ignore=shutil.ignore_patterns("model_int8.onnx"))
    graph, weights = folder / "onnx" / "model.onnx", folder / "model.safetensors"
    if moved == "offset":
        model = onnx.load(graph, load_external_data=False)
        tensor = next(own for own in model.graph.initializer if "word_embeddings" in own.name)
        entry = next(own for own in tensor.external_data if own.key == "offset")
        entry.value = str(int(entry.value) - 8)
        onnx.save(model, graph)
    else:
        if "cached" in moved:
            load_model(folder)
        content = weights.read_bytes()
        length = int.from_bytes(content[:8], "little")
        longer = content[8 : 8 + length] + 8 * b" "
        weights.write_bytes((length + 8).to_bytes(8, "little") + longer + content[8 + length :])
    with pytest.raises(ModelError, match=r"model\.safetensors has no tensor at byte"):
        load_model(folder)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("model.safetensors.index.json", []),
        ("config.json", {"architectures": 5}),
        ("config.json", []),
    ],
)
def test_the_list_of_models_leaves_out_damaged_ones(
    tiny_models, tmp_path, monkeypatch, file, content
):
    for name in ("good", "damaged"):
        snapshot = tmp_path / f"models--org--{name}" / "snapshots" / ("a" * 40)
        shutil.copytree(tiny_models.without_onnx("bert"), snapshot)
        (tmp_path / f"models--org--{name}" / "refs").mkdir()
        (tmp_path / f"models--org--{name}" / "refs" / "main").write_text("a" * 40)
    if "index" in file:
        (snapshot / "model.safetensors").unlink()
    (snapshot / file).write_text(json.dumps(content), encoding="utf-8")
    monkeypatch.setattr(hub_models.constants, "HF_HUB_CACHE", str(tmp_path))
    references = [model.reference for model in available_models()]
    assert references == ["embedded", "embedded:int8", "embedded:torch", "org/good"]
