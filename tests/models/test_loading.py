"""Which files a reference means, what the signature says, and what importing costs."""

import hashlib
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from models.conftest import transformers_output
from tiny_models import TinyModels, batch_of, quiet, reference_model

from fillmask_ui import scoring
from fillmask_ui.models import available_models, load_model
from fillmask_ui.models.model_choice import parse_reference
from fillmask_ui.models.model_files import ModelConfig
from fillmask_ui.protocol import MaskedLM

TEXTS = ["The cat [MASK] on the [MASK].", "[MASK] a"]


@pytest.mark.parametrize(
    ("text", "kind", "hub_id", "revision"),
    [
        (None, "embedded", "", None),
        ("embedded:int8", "embedded", "", None),
        ("bert-base-uncased", "hub", "bert-base-uncased", None),
        ("google-bert/bert-base-uncased", "hub", "google-bert/bert-base-uncased", None),
        ("org/name@refs/pr/3", "hub", "org/name", "refs/pr/3"),
        ("org/name.v2@main", "hub", "org/name.v2", "main"),
    ],
)
def test_references(text, kind, hub_id, revision):
    parsed = parse_reference(text)
    assert (parsed.kind, parsed.hub_id, parsed.revision) == (kind, hub_id, revision)


def test_what_is_on_disk_wins_over_the_hub(tmp_path, monkeypatch):
    (tmp_path / "org" / "name").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert parse_reference("org/name").kind == "folder"
    assert parse_reference("org/other").kind == "hub"


@pytest.mark.parametrize(
    ("config", "positions", "first"),
    [
        ({"model_type": "bert", "max_position_embeddings": 512}, 512, 0),
        ({"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1}, 512, 2),
        ({"model_type": "xlm-roberta", "max_position_embeddings": 514}, 512, 2),
        ({"model_type": "esm", "max_position_embeddings": 1026, "pad_token_id": 1}, 1024, 2),
        ({"model_type": "modernbert", "max_position_embeddings": 8192}, 8192, 0),
        ({"model_type": "xlnet", "max_position_embeddings": -1}, None, 0),
        ({}, None, 0),
    ],
)
def test_usable_positions(config, positions, first):
    """Published sizes: 512 tokens for BERT and RoBERTa, 1,024 for ESM-2, 8,192 for ModernBERT."""
    assert ModelConfig(config).usable_positions == positions
    assert ModelConfig(config).first_position == first


def same(model: MaskedLM, reference: MaskedLM, atol: float = 1e-4) -> None:
    texts = [text.replace("[MASK]", model.vocabulary.mask_token) for text in TEXTS]
    batch = batch_of(model.vocabulary, texts)
    np.testing.assert_allclose(model.logits_at(*batch), reference.logits_at(*batch), atol=atol)


def test_files_and_paths_that_stand_for_a_folder(tiny_models: TinyModels, monkeypatch):
    folder = tiny_models.folder("bert")
    usual, file = load_model(folder), folder / "onnx" / "model.onnx"
    monkeypatch.setenv("HOME", str(folder.parent))
    for reference, name, runtime in (
        (file, file, "onnx"),
        (folder / "config.json", folder, "onnx"),
        (folder / "model.safetensors", folder, "torch"),
        (f"~/{folder.name}", folder, "onnx"),
        (f"~/{folder.name}/onnx/model.onnx", file, "onnx"),
    ):
        model = load_model(reference)
        assert (model.signature.name, model.signature.runtime) == (str(name), runtime)
        same(model, usual)


def test_onnx_files_in_other_places(tiny_models: TinyModels, tmp_path):
    """Alone with a tokenizer named; without a config; in the root of its folder."""
    roberta, bert = tiny_models.folder("roberta"), tiny_models.folder("bert")
    shutil.copy(roberta / "onnx" / "model.onnx", tmp_path / "mine.onnx")
    named = load_model(tmp_path / "mine.onnx", tokenizer=roberta)
    assert named.signature.architecture == "roberta"
    same(named, load_model(roberta), 1e-5)
    for name in ("tokenizer.json", "tokenizer_config.json", "onnx/model.onnx"):
        shutil.copy(bert / name, tmp_path)
    model = load_model(tmp_path / "model.onnx")
    assert (model.signature.architecture, model.max_tokens) == ("unknown", 64)
    same(model, load_model(bert))
    shutil.copy(bert / "config.json", tmp_path)
    model = load_model(tmp_path)
    assert (model.signature.runtime, model.signature.architecture) == ("onnx", "bert")
    same(model, load_model(bert))


def test_sharded_safetensors(tiny_models: TinyModels, tmp_path):
    folder = tiny_models.folder("bert", onnx=False)
    for path in folder.glob("*.json"):
        shutil.copy(path, tmp_path)
    reference_model(folder).save_pretrained(tmp_path, max_shard_size="50KB")
    shards = sorted(tmp_path.glob("model-*.safetensors"))
    assert len(shards) > 1
    loaded = load_model(tmp_path)
    assert loaded.signature.size_bytes == sum(path.stat().st_size for path in shards)
    hashes = sorted(hashlib.sha256(path.read_bytes()).hexdigest() for path in shards)
    assert loaded.signature.sha256 == hashlib.sha256("".join(hashes).encode()).hexdigest()
    same(loaded, load_model(folder, runtime="torch"))


def test_signatures(tiny_models: TinyModels, loaded):
    folder = tiny_models.folder("bert")
    onnx, torch = (loaded("bert", runtime).signature for runtime in ("onnx", "torch"))
    for signature, file in ((onnx, "onnx/model.onnx"), (torch, "model.safetensors")):
        content = (folder / file).read_bytes()
        assert signature.name == str(folder)
        assert signature.architecture == "bert"
        assert signature.precision == "float32"
        assert signature.sha256 == hashlib.sha256(content).hexdigest()
        assert signature.size_bytes == len(content)
        assert signature.vocabulary_size == 300
        assert signature.cpu_features
        assert {"fillmask-ui", "tokenizers"} <= set(signature.versions)
    assert (onnx.runtime, onnx.device) == ("onnx", "CPUExecutionProvider")
    assert (torch.runtime, torch.device) == ("torch", "cpu")
    assert torch.parameters == reference_model(folder).num_parameters()
    assert onnx == load_model(folder).signature


def test_dtype_threads_and_graph_optimization(tiny_models: TinyModels, loaded):
    folder, usual = tiny_models.folder("bert"), loaded("bert", "onnx")
    for dtype, atol in (("bfloat16", 0.5), ("float64", 1e-4)):
        model = load_model(folder, runtime="torch", dtype=dtype, device="cpu", threads=1)
        assert model.signature.precision == f"float32 computed in {dtype}"
        same(model, usual, atol=atol)
        if dtype == "bfloat16":
            with pytest.raises(AssertionError):
                same(model, usual, atol=1e-5)
    model = load_model(folder, threads=1, graph_optimization="none")
    assert model.signature.settings == {"graph-optimization": "none"}
    assert "|graph-optimization:none|" in str(model.signature)
    assert model.signature.notes == usual.signature.notes == ()
    same(model, usual)


def test_all_that_changes_a_digit_stands_in_the_signature(copy):
    """Options of the runtime, config.json and the tokenizer; the folder's weights stay."""
    folder = copy("bert")
    choices = ({}, {"graph_optimization": "basic"}, {"x64_quant_precision": "on"})
    signatures = [str(load_model(folder, **options).signature) for options in choices]
    plain = load_model(folder, runtime="torch")
    config = json.loads((folder / "config.json").read_text())
    # What only says which library wrote the file changes nothing.
    (folder / "config.json").write_text(json.dumps({**config, "transformers_version": "0"}))
    assert load_model(folder, runtime="torch").signature == plain.signature
    (folder / "config.json").write_text(json.dumps({**config, "layer_norm_eps": 1e-3}))
    changed = load_model(folder, runtime="torch")
    with pytest.raises(AssertionError):
        same(changed, plain, atol=1e-5)
    text = (folder / "tokenizer.json").read_text()
    (folder / "tokenizer.json").write_text(text.replace('"lowercase": true', '"lowercase": false'))
    words = load_model(folder, runtime="torch")
    signatures += [str(model.signature) for model in (plain, changed, words)]
    assert len(set(signatures)) == 6
    assert plain.signature.sha256 == words.signature.sha256


def test_exact_products_of_bytes_are_a_choice():
    plain = load_model("embedded:int8")
    exact = load_model("embedded:int8", x64_quant_precision="on")
    assert exact.signature == replace(plain.signature, settings={"x64-quant-precision": "on"})
    assert "|x64-quant-precision:on|" in str(exact.signature)
    # In 32 bits nothing saturates, so that where VNNI adds up the numbers are the same.
    if {"avx512_vnni", "avx_vnni"}.intersection(plain.signature.cpu_features):
        same(exact, plain, atol=0)


def test_the_embedded_variants_are_one_model():
    listed = {model.reference: model for model in available_models()}
    names = ("embedded", "embedded:torch", "embedded:int8")
    full, torch, small = models = [load_model(name) for name in names]
    for name, model in zip(names, models, strict=True):
        assert listed[name].where == "embedded"
        assert model.signature.size_bytes == listed[name].size_bytes
        assert model.signature.runtime == listed[name].runtimes[0]
    assert load_model(runtime="torch").signature.runtime == "torch"
    assert (full.signature.architecture, full.max_tokens) == ("bert", 512)
    assert (full.signature.precision, small.signature.precision) == ("float16", "int8")
    texts = ["The capital of France is [MASK].", "She [MASK] the door and walked [MASK]."]
    batch = batch_of(full.vocabulary, texts)
    expected = torch.logits_at(*batch)
    np.testing.assert_allclose(full.logits_at(*batch), expected, atol=1e-3)
    # int8 rounds: other numbers, plainly the same model.
    quantized = small.logits_at(*batch)
    for quantized_row, expected_row in zip(quantized, expected, strict=True):
        assert np.corrcoef(quantized_row, expected_row)[0, 1] > 0.98
    assert not np.allclose(quantized, expected, atol=1e-3)
    best = scoring.top_k(scoring.exponentials(expected).log_probabilities, 1).token_ids
    assert (scoring.ranks(quantized, best[:, 0]) <= 5).all()


def test_the_newer_head_of_deberta(tiny_models: TinyModels, tmp_path):
    """It has no projection of its own, but multiplies by the embeddings."""
    from transformers import AutoConfig, AutoModelForMaskedLM

    folder = tiny_models.folder("deberta-v2", onnx=False)
    for path in folder.glob("*.json"):
        shutil.copy(path, tmp_path)
    config = AutoConfig.from_pretrained(folder, legacy=False)
    with quiet():
        AutoModelForMaskedLM.from_config(config).save_pretrained(tmp_path)
    model = load_model(tmp_path)
    batch = batch_of(model.vocabulary, TEXTS)
    expected = transformers_output(tmp_path, batch).logits[batch.rows, batch.cols]
    np.testing.assert_allclose(model.logits_at(*batch), expected, atol=1e-4)


@pytest.mark.parametrize(
    "base",
    [
        lambda model: model,
        lambda model: model.bert.embeddings,
        lambda model: model.bert.encoder.layer[0].attention.self,
    ],
    ids=["no base", "not hidden states", "base too early"],
)
def test_a_head_that_cannot_be_cut(tiny_models: TinyModels, monkeypatch, base):
    """A model that names the wrong place falls back to full logits, and says so."""
    from transformers import BertForMaskedLM

    folder = tiny_models.folder("bert")
    monkeypatch.setattr(BertForMaskedLM, "base_model", property(base))
    model = load_model(folder, runtime="torch")
    monkeypatch.undo()
    assert "computed at all positions" in model.signature.notes[0]
    batch = batch_of(model.vocabulary, TEXTS)
    expected = transformers_output(folder, batch).logits[batch.rows, batch.cols]
    np.testing.assert_allclose(model.logits_at(*batch), expected, atol=1e-4)
    monkeypatch.setattr("fillmask_ui.models.runtime_model._RUN_BYTES", 1)
    np.testing.assert_allclose(model.logits_at(*batch), expected, atol=1e-4)
