"""Attention weights of every family on both runtimes: those of transformers."""

import json
import shutil

import numpy as np
import onnx
import pytest
from onnx import helper
from scipy.stats import entropy, spearmanr
from table_model import TableModel
from test_displays import shown
from tiny_models import (
    EVERY_FAMILY,
    OTHERS,
    export_onnx,
    quiet,
    reference_model,
    reference_tokenizer,
    texts_for,
)
from typer.testing import CliRunner

from fillmask_ui import attention, mask_attention
from fillmask_ui.cli.main import app
from fillmask_ui.errors import ModelError, OptionError, TextError
from fillmask_ui.features.attention.mask_attention import rank_correlation
from fillmask_ui.models import load_model
from fillmask_ui.onnx_tools.attention_graph import attention_values
from fillmask_ui.onnx_tools.dynamic_int8 import dynamic_int8

TEXT = "The [MASK] of France is a [MASK]."


def expected(folder, ids):
    """float32 [L, A, T, T] by `output_attentions` of transformers, one token after the other."""
    import torch

    with torch.no_grad():
        model = reference_model(folder, attn_implementation="eager")
        return torch.cat(model(torch.tensor([ids]), output_attentions=True).attentions).numpy()


def check(model, folder, family):
    for text in texts_for(family, model.vocabulary.mask_token)[:2]:
        ids = model.vocabulary.encode(text).ids
        weights = attention(model, text)
        reference = expected(folder, ids)
        assert weights.dtype == np.float32
        assert weights.shape == reference.shape == (*reference.shape[:2], len(ids), len(ids))
        np.testing.assert_allclose(weights, reference, atol=1e-5)
        np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)
        # Heads and layers differ, else little would be compared.
        assert np.ptp(weights, axis=1).max() > 0.1 < np.abs(np.diff(weights, axis=0)).max()


@pytest.mark.parametrize("family", EVERY_FAMILY)
@pytest.mark.parametrize("runtime", ["onnx", "torch"])
def test_weights_are_those_of_transformers(family, runtime, loaded, tiny_models):
    check(loaded(family, runtime), tiny_models.folder(family), family)


@pytest.mark.parametrize("family", OTHERS)
def test_weights_of_other_families_quickly(family, tiny_models):
    folder = tiny_models.folder(family, onnx=False)
    check(load_model(folder, runtime="torch"), folder, family)


def test_the_model_is_as_it_was(loaded):
    """Eager attention is of a copy of the modules: fused attention keeps running elsewhere."""
    model = loaded("bert", "torch")
    ids = np.array([model.vocabulary.encode(TEXT).ids])
    question = ids, np.ones_like(ids), np.array([0]), np.array([2])
    before = model.logits_at(*question)
    attention(model, TEXT)
    np.testing.assert_array_equal(model.logits_at(*question), before)
    np.testing.assert_array_equal(attention(model, TEXT), attention(model, TEXT))


def test_a_model_in_training_shows_its_attention(tiny_models):
    folder = tiny_models.folder("bert", onnx=False)
    module = reference_model(folder).train()
    model = load_model(module, tokenizer=reference_tokenizer(folder))
    ids = model.vocabulary.encode(TEXT).ids
    np.testing.assert_allclose(attention(model, TEXT), expected(folder, ids), atol=1e-5)
    assert module.training and module.config._attn_implementation != "eager"


def changed(folder, tmp_path, change):
    """A model whose graph was changed, in a folder without others."""
    copy = shutil.copytree(folder, tmp_path / "copy")
    graph = onnx.load(copy / "onnx" / "model.onnx")
    onnx.save(change(graph) or graph, copy / "onnx" / "model.onnx")
    (copy / "model.safetensors").unlink()
    return load_model(copy, runtime="onnx")


def test_int8_graphs(tiny_models, tmp_path, loaded):
    model = changed(tiny_models.folder("bert"), tmp_path, dynamic_int8)
    assert model.signature.precision == "int8"
    weights, exact = attention(model, TEXT), attention(loaded("bert", "torch"), TEXT)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)
    assert 0 < np.abs(weights - exact).max() < 0.2


@pytest.mark.parametrize("sizes", [{"batch": 2}, {"length": 48}])
def test_graphs_of_a_fixed_size(sizes, tiny_models, tmp_path, loaded):
    folder = shutil.copytree(tiny_models.folder("bert"), tmp_path / "fixed")
    export_onnx(folder, **sizes)
    weights = attention(load_model(folder, runtime="onnx"), TEXT)
    np.testing.assert_allclose(weights, attention(loaded("bert", "torch"), TEXT), atol=1e-5)


def test_a_fused_graph_is_refused(tiny_models, tmp_path):
    graph = onnx.load(tiny_models.folder("bert") / "onnx" / "model.onnx")
    (logits,) = [output.name for output in graph.graph.output]
    assert len(attention_values(graph, logits)) == 2
    fused = helper.make_node("MultiHeadAttention", [logits], ["fused"], domain="com.microsoft")
    graph.graph.node.append(fused)
    graph.graph.output[0].name = "fused"
    with pytest.raises(ModelError, match=r"does not show its attention: it is fused \(MultiHead"):
        attention_values(graph, "fused")
    with pytest.raises(ModelError, match="it has no softmax over tokens"):
        attention_values(graph, graph.graph.node[0].output[0])


def test_linear_attention_is_refused(loaded, monkeypatch):
    """As of Nystromformer: softmaxes over landmarks, and products that do not sum to 1."""
    model = loaded("bert", "onnx")
    weights = attention(model, TEXT)[:, None]  # [L, 1, A, T, T]
    for values, reason in (
        (weights[..., :3], "it has no weight for each pair of tokens"),
        (0.9 * weights, "its weights do not sum to 1, as in linear attention"),
    ):
        monkeypatch.setattr(model, "inner_values", lambda *_, values=values: [*values])
        with pytest.raises(ModelError, match=reason):
            attention(model, TEXT)


def test_fourier_mixing_is_refused(tiny_models, tmp_path):
    """FNet has no attention."""
    from transformers import AutoConfig, AutoModelForMaskedLM  # slow to import

    sizes = {"vocab_size": 300, "hidden_size": 32, "intermediate_size": 64, "pad_token_id": 0}
    with quiet():
        config = AutoConfig.for_model("fnet", **sizes, num_hidden_layers=1)
        AutoModelForMaskedLM.from_config(config).save_pretrained(tmp_path)
    for path in tiny_models.without_onnx("bert").glob("token*.json"):
        shutil.copy(path, tmp_path)
    with pytest.raises(ModelError, match="it has no weight for each pair of tokens"):
        attention(load_model(tmp_path, runtime="torch"), TEXT)


def test_a_model_without_attention_is_refused():
    with pytest.raises(ModelError, match="does not show its attention: it runs on neither"):
        attention(TableModel(1), "the [MASK] .")


def test_texts_with_and_without_a_mask(loaded):
    model = loaded("bert", "onnx")
    assert attention(model, "the cat sat on the mat").shape[:2] == (2, 4)
    with pytest.raises(TextError, match="the text is empty"):
        attention(model, " ")
    with pytest.raises(OptionError, match="the text has 2 masks, and none of this number"):
        mask_attention(model, TEXT, 2)
    with pytest.raises(TextError, match="the text has no mask"):
        mask_attention(model, "the cat sat on the mat")


def test_a_notebook_shows_every_head(loaded):
    result = mask_attention(loaded("bert", "onnx"), TEXT, 1)
    assert repr(result) == f"MaskAttention({TEXT!r}, position 8, 2 layers of 4 heads)"
    frame = shown(result)
    sums = frame.groupby(["layer", "head"]).from_mask.sum()
    assert len(frame) == result.from_mask.size and len(sums) == 8
    np.testing.assert_allclose(sums, 1, atol=1e-5)
    assert result._repr_html_().count("%</small>") == 8
    bars = result.figure().data[0]
    np.testing.assert_allclose(sum(bars.x), 1, atol=1e-5)


def test_one_mask_by_heads_and_words(loaded):
    model = loaded("bert", "onnx")
    weights, seen = attention(model, TEXT), mask_attention(model, TEXT, 1)
    assert seen.position == 8
    np.testing.assert_array_equal(seen.from_mask, weights[:, :, 8])
    np.testing.assert_array_equal(seen.to_mask, weights[..., 8])
    np.testing.assert_allclose(seen.entropies_nats, entropy(weights[:, :, 8], axis=-1), atol=1e-6)
    (head,) = seen.heads(2, 3)
    assert (head.layer, head.head) == (2, 3)
    assert head.from_mask == tuple(weights[1, 2, 8].tolist())
    assert [(head.layer, head.head) for head in seen.heads(head=1)] == [(1, 1), (2, 1)]
    with pytest.raises(OptionError, match="the model has heads 1 to 4; head was 5"):
        seen.heads(1, 5)
    for chosen, matrix in ((None, weights[0].mean(axis=0)), (2, weights[0, 1])):
        words = seen.words(1, chosen)
        assert [token for word in words for token in word.tokens] == list(range(len(seen.encoding)))
        assert sum(word.from_mask for word in words) == pytest.approx(1, abs=1e-5)
        for word in words:
            assert word.from_mask == pytest.approx(matrix[8, word.tokens].sum())
            assert word.to_mask == pytest.approx(matrix[word.tokens, 8].mean())
        assert [word.is_special for word in words] == [True, *[False] * (len(words) - 2), True]
    assert [word.text for word in words if word.is_word] == ["The", "of", "France", "is", "a", "."]


def test_rank_correlation_is_that_of_scipy():
    rng = np.random.default_rng(3)
    for size in (3, 4, 9, 40):
        for _ in range(20):
            first, second = rng.integers(0, 6, (2, size)) / 7  # with many equal values
            reference = (
                spearmanr(first, second).statistic if np.ptp(first) * np.ptp(second) else None
            )
            assert rank_correlation(first, second) == pytest.approx(reference, abs=1e-9)
    assert rank_correlation([1, 2], [1, 2]) is None
    assert rank_correlation([1, 1, 1], [1, 2, 3]) is None


def test_the_command():
    run = CliRunner().invoke
    model = ["--model", "embedded"]
    text = "The capital of France is [MASK]."
    printed = run(app, ["attention", text, "--layer", "2", "--head", "3", "--json", *model])
    (record,) = map(json.loads, printed.output.splitlines())
    seen = mask_attention(load_model("embedded"), text)
    assert record == json.loads(json.dumps(seen.to_dict_of(seen.heads(2, 3))))
    assert record["tokens"][record["position"]] == "[MASK]"
    assert sum(record["heads"][0]["from_mask"]) == pytest.approx(1, abs=1e-5)
    everything = run(app, ["attention", text, "--json", *model])
    assert len(json.loads(everything.output)["heads"]) == 72
    table = run(app, ["attention", text, "--layer", "2", *model]).output
    assert "Looks most at" in table and table.count("│     2 │") == 12
    assert "From [MASK]" in run(app, ["attention", text, "--layer", "2", "--head", "3"]).output
    assert run(app, ["attention", text, "--layer", "9", *model]).exit_code
