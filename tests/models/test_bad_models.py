"""Models that cannot be used are refused with what came, what was wanted and what to do."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from tiny_models import batch_of, export_onnx

from fillmask_ui.errors import ModelError, ModelOutputError
from fillmask_ui.models import available_models, load_model


def edit_json(path, **changes) -> None:
    values = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**values, **changes}), encoding="utf-8")


def test_a_file_that_is_no_onnx(copy):
    with pytest.raises(ModelError, match=r"is not the \.onnx file of a model"):
        load_model(copy() / "tokenizer.json")


@pytest.mark.parametrize("kept", [0, 1, 100, 20_000], ids=lambda n: f"{n} bytes")
def test_truncated_onnx(copy, kept):
    path = copy() / "onnx" / "model.onnx"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ModelError, match=r"cut short|damaged|cannot open"):
        load_model(path)


@pytest.mark.parametrize(
    "content", [b"<html>404 Not Found</html>" * 50, b"\0" * 1000, b"PK\x03\x04" + b"x" * 500]
)
def test_not_onnx(copy, content):
    path = copy() / "onnx" / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(
        ModelError, match=r"damaged, cut short or no ONNX|empty, cut short or no ONNX"
    ):
        load_model(path)


def test_a_graph_of_fewer_positions_than_its_config_says(copy):
    folder = copy()
    for name, key in (
        ("config.json", "max_position_embeddings"),
        ("tokenizer_config.json", "model_max_length"),
    ):
        edit_json(folder / name, **{key: 10**6})
    model = load_model(folder, runtime="onnx")
    with pytest.raises(ModelError, match=r"its graph takes \d+ tokens at most, whatever"):
        model.logits_at(*batch_of(model.vocabulary, ["the " * 600 + "[MASK]"]))


def test_graph_that_onnxruntime_cannot_run(copy):
    path = copy() / "onnx" / "model.onnx"
    model = onnx.load(path)
    model.graph.node[0].op_type = "NoSuchOperator"
    onnx.save(model, path)
    with pytest.raises(ModelError, match=r"cannot open .*NoSuchOperator"):
        load_model(path)


def test_onnx_without_vocabulary_sized_output(copy, tiny_models):
    folder = copy()
    export_onnx(tiny_models.folder("bert"), folder / "onnx" / "model.onnx", outputs=("hidden",))
    with pytest.raises(ModelError) as caught:
        load_model(folder)
    message = str(caught.value)
    assert "no masked language model" in message
    assert "300 tokens" in message
    assert "hidden [2, 7, 32]" in message


def test_onnx_with_other_inputs(copy):
    path = copy() / "onnx" / "model.onnx"
    model = onnx.load(path)
    pixels = onnx.helper.make_tensor_value_info("pixel_values", 1, ["batch", 3, 8, 8])
    model.graph.input.append(pixels)
    onnx.save(model, path)
    with pytest.raises(ModelError, match=r"pixel_values .* not known"):
        load_model(path)


@pytest.mark.parametrize("runtime", ["onnx", "torch"])
def test_nan_weights_are_said(copy, runtime):
    """All logits NaN: refused at loading."""
    folder = copy()
    if runtime == "onnx":
        path = folder / "onnx" / "model.onnx"
        model = onnx.load(path)
        for tensor in model.graph.initializer:
            if len(tensor.dims) == 1 and tensor.data_type == 1:
                values = np.full(tensor.dims, np.nan, np.float32)
                tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
        onnx.save(model, path)
    else:
        from safetensors.numpy import load_file, save_file

        path = folder / "model.safetensors"
        weights = {
            k: np.full_like(v, np.nan) if v.ndim == 1 else v for k, v in load_file(path).items()
        }
        save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(ModelOutputError, match="NaN"):
        load_model(folder, runtime=runtime)


@pytest.mark.parametrize("runtime", ["onnx", "torch"])
def test_nan_at_one_position_is_said(copy, runtime):
    """Only the vector of position 20 is broken: short texts work, longer ones say NaN."""
    folder = copy()
    if runtime == "onnx":
        path = folder / "onnx" / "model.onnx"
        graph = onnx.load(path)
        (table,) = (t for t in graph.graph.initializer if "position_embeddings" in t.name)
        values = numpy_helper.to_array(table).copy()
        values[20] = np.nan
        table.CopyFrom(numpy_helper.from_array(values, table.name))
        onnx.save(graph, path)
    else:
        from safetensors.numpy import load_file, save_file

        path = folder / "model.safetensors"
        weights = load_file(path)
        weights["bert.embeddings.position_embeddings.weight"][20] = np.nan
        save_file(weights, path, metadata={"format": "pt"})
    model = load_model(folder, runtime=runtime)
    assert np.isfinite(model.logits_at(*batch_of(model.vocabulary, ["a [MASK]"]))).all()
    with pytest.raises(ModelOutputError, match="returned NaN at 1 of 1 positions"):
        model.logits_at(*batch_of(model.vocabulary, ["a " * 25 + "[MASK]"]))


def test_tokenizer_without_mask_token(copy):
    folder = copy()
    tokenizer = folder / "tokenizer.json"
    values = json.loads(tokenizer.read_text(encoding="utf-8"))
    for token in values["added_tokens"]:
        if token["content"] == "[MASK]":
            token["content"] = "[HIDE]"
    values["model"]["vocab"]["[HIDE]"] = values["model"]["vocab"].pop("[MASK]")
    tokenizer.write_text(json.dumps(values), encoding="utf-8")
    edit_json(
        folder / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast", mask_token=None
    )
    with pytest.raises(ModelError, match="no mask token"):
        load_model(folder)


def test_no_tokenizer(copy):
    folder = copy()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    with pytest.raises(ModelError, match=r"no tokenizer beside it.*--tokenizer"):
        load_model(folder)
    with pytest.raises(ModelError, match=r"no tokenizer beside it.*--tokenizer"):
        load_model(folder / "onnx" / "model.onnx")


def test_damaged_tokenizer(copy):
    folder = copy()
    (folder / "tokenizer.json").write_text("{", encoding="utf-8")
    with pytest.raises(ModelError, match=r"cannot be read as a tokenizer: "):
        load_model(folder)


@pytest.mark.parametrize("runtime", ["onnx", "torch"])
def test_tokenizer_larger_than_the_model(copy, tiny_models, runtime):
    """RoBERTa's tokenizer has 420 tokens, this BERT 300 logits: both sizes are said."""
    folder = copy()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    with pytest.raises(ModelError) as caught:
        load_model(folder, tokenizer=tiny_models.folder("roberta"), runtime=runtime)
    assert "420 tokens" in str(caught.value)
    assert "logits for 300" in str(caught.value)


@pytest.mark.parametrize("runtime", ["onnx", "torch"])
def test_model_wider_than_the_tokenizer_is_fine(tiny_models, tmp_path, runtime):
    """As DeBERTa-v3 and many ESM-sized vocabularies are; the signature says so."""
    from transformers import AutoModelForMaskedLM

    source = tiny_models.folder("bert", onnx=False)
    model = AutoModelForMaskedLM.from_pretrained(source)
    model.resize_token_embeddings(320)
    for path in source.iterdir():
        if path.suffix == ".json":
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


def test_causal_model(copy):
    folder = copy()
    edit_json(folder / "config.json", architectures=["GPT2LMHeadModel"], model_type="gpt2")
    for runtime in ("onnx", "torch"):
        with pytest.raises(ModelError, match=r"GPT2LMHeadModel; choose a model for fill-mask"):
            load_model(folder, runtime=runtime)
    edit_json(folder / "config.json", architectures=["BartForConditionalGeneration"])
    with pytest.raises(ModelError, match=r"BartForConditionalGeneration; choose a model"):
        load_model(folder)


def test_weights_without_a_masked_lm_head(copy):
    """transformers would fill the head with random numbers and say so in a log line."""
    from transformers import AutoModel

    folder = copy(onnx=False)
    AutoModel.from_pretrained(folder).save_pretrained(folder)
    with pytest.raises(ModelError, match=r"lacks \d+ weights of a BertForMaskedLM.*random"):
        load_model(folder)


def test_architecture_without_a_masked_lm_class(copy):
    folder = copy(onnx=False)
    edit_json(folder / "config.json", model_type="vit", architectures=["ViTModel"])
    with pytest.raises(ModelError, match="cannot be loaded as a masked language model"):
        load_model(folder)


# Each fails in the libraries below with an error of another class.
@pytest.mark.parametrize(
    "changes",
    [
        {"pad_token_id": 5000},
        {"quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True}},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_config_that_asks_for_what_cannot_be(copy, changes):
    folder = copy(onnx=False)
    edit_json(folder / "config.json", **changes)
    with pytest.raises(ModelError, match="cannot be loaded as a masked language model"):
        load_model(folder)


def test_weights_that_do_not_fit_on_the_device(tiny_models, monkeypatch):
    import torch
    from transformers import BertForMaskedLM

    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    monkeypatch.setattr(BertForMaskedLM, "to", full)
    with pytest.raises(ModelError, match=r"cannot be loaded .*: CUDA out of memory"):
        load_model(tiny_models.folder("bert", onnx=False), runtime="torch")


def test_config_that_is_no_json(copy):
    folder = copy()
    (folder / "config.json").write_text("architectures: yes", encoding="utf-8")
    with pytest.raises(ModelError, match=r"config\.json cannot be read as a model"):
        load_model(folder)


def test_truncated_safetensors(copy):
    folder = copy(onnx=False)
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    for kept in (0, 4, 50, len(whole) - 1):
        path.write_bytes(whole[:kept])
        with pytest.raises(ModelError, match=r"model\.safetensors cannot be read as a model"):
            load_model(folder)


def test_pickle_only_folder(copy):
    folder = copy(onnx=False)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"pytorch_model\.bin.*can run any code"):
        load_model(folder)


def test_folder_without_weights(copy):
    folder = copy(onnx=False)
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="holds no weights"):
        load_model(folder)


def test_index_that_points_elsewhere(copy):
    folder = copy(onnx=False)
    (folder / "model.safetensors").rename(folder.parent / "outside.safetensors")
    index = {"weight_map": {"a": "../outside.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    with pytest.raises(ModelError, match="parts that are not in its folder"):
        load_model(folder)


@pytest.mark.parametrize(
    "index", [[], {"weight_map": {}}, {"weight_map": {"a": ["b"]}}, {"weight_map": {"a": "b.bin"}}]
)
def test_index_of_another_form(copy, index):
    folder = copy(onnx=False)
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    with pytest.raises(ModelError, match=r"index\.json (cannot be read as a model|names no parts)"):
        load_model(folder)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("model.safetensors.index.json", []),
        ("model.safetensors.index.json", {"weight_map": {"a": 5, "b": "x" * 300}}),
        ("config.json", {"architectures": 5}),
        ("config.json", []),
        ("../../refs/main", b"b" * 40),
        ("model.onnx", Path("model.onnx")),  # a link to itself
    ],
)
def test_the_list_of_models_leaves_out_damaged_ones(
    tiny_models, tmp_path, monkeypatch, file, content
):
    from fillmask_ui.models import hub

    for name in ("good", "damaged"):
        snapshot = tmp_path / f"models--org--{name}" / "snapshots" / ("a" * 40)
        shutil.copytree(tiny_models.without_onnx("bert"), snapshot)
        (tmp_path / f"models--org--{name}" / "refs").mkdir()
        (tmp_path / f"models--org--{name}" / "refs" / "main").write_text("a" * 40)
    if "index" in file:
        (snapshot / "model.safetensors").unlink()
    if isinstance(content, Path):
        (snapshot / file).symlink_to(content)
    elif isinstance(content, bytes):
        (snapshot / file).write_bytes(content)
    else:
        (snapshot / file).write_text(json.dumps(content), encoding="utf-8")
    monkeypatch.setattr(hub.constants, "HF_HUB_CACHE", str(tmp_path))
    references = [model.reference for model in available_models()]
    assert references == ["embedded", "embedded:int8", "embedded:torch", "org/good"]
