"""The layers of every family on both runtimes: the states of transformers, through its own head."""

import shutil
from functools import reduce
from itertools import pairwise
from operator import attrgetter

import numpy as np
import onnx
import pytest
from onnx import helper
from scipy.stats import entropy
from table_model import TableModel
from tiny_models import EVERY_FAMILY, OTHERS, export_onnx, quiet, reference_model, texts_for

from fillmask_ui import fill, layers
from fillmask_ui.errors import ModelError
from fillmask_ui.models import load_model
from fillmask_ui.onnx_tools.dynamic_int8 import dynamic_int8
from fillmask_ui.protocol import LayerStates

# The modules of each architecture's masked-LM head, in order, as its class of transformers has
# them; of those that normalise before each part, the norm behind the last layer.
HEADS = {
    "bert": "cls",
    "roberta": "lm_head",
    "xlm-roberta": "lm_head",
    "distilbert": "vocab_transform activation vocab_layer_norm vocab_projector",
    "albert": "predictions",
    "electra": "generator_predictions generator_lm_head",
    "deberta-v2": "cls",
    "mpnet": "lm_head",
    "modernbert": "head decoder",
    "esm": "lm_head",
}
LAST_NORMS = {"modernbert": "model.final_norm", "esm": "esm.encoder.emb_layer_norm_after"}


def expected(folder, family, ids):
    """Logits behind each layer, [T, V], by `output_hidden_states` and the head of the model."""
    import torch

    model = reference_model(folder)
    with torch.no_grad():
        *states, last = model(torch.tensor([ids]), output_hidden_states=True).hidden_states
        if norm := LAST_NORMS.get(family):
            states = map(attrgetter(norm)(model), states)
        parts = [attrgetter(name)(model) for name in HEADS[family].split()]
        return [
            reduce(lambda x, part: part(x), parts, state)[0].numpy() for state in (*states, last)
        ]


def check(model, folder, family):
    text = texts_for(family, model.vocabulary.mask_token)[1]
    ids = model.vocabulary.encode(text).ids
    cols = np.random.default_rng(7).permutation(len(ids))
    expected_logits = expected(folder, family, ids)
    assert isinstance(model, LayerStates)
    states = model.layer_states(np.array(ids))
    for state, logits in zip(states, expected_logits, strict=True):
        actual = model.layer_logits(state, cols)
        assert actual.dtype == np.float32
        np.testing.assert_allclose(actual, logits[cols], atol=1e-4)
    # Layers differ, else little would be compared.
    assert all(np.abs(a - b).max() > 0.1 for a, b in pairwise(expected_logits))
    lens, filling = layers(model, text, top_k=3), fill(model, text, top_k=3)
    for token, mask in zip(lens.positions, filling.masks, strict=True):
        assert token.position == mask.position
        assert token.layers[-1].candidates == mask.candidates  # to the last digit
        assert token.layers[-1].entropy_nats == mask.entropy_nats
        for guess, logits in zip(token.layers, expected_logits, strict=True):
            chances = np.exp(logits[mask.position].astype(float))
            assert guess.entropy_nats == pytest.approx(entropy(chances), abs=1e-3)
            assert guess.candidates[0].token_id == logits[mask.position].argmax()


@pytest.mark.parametrize("family", EVERY_FAMILY)
@pytest.mark.parametrize("runtime", ["onnx", "torch"])
def test_layers_are_those_of_transformers(family, runtime, loaded, tiny_models):
    check(loaded(family, runtime), tiny_models.folder(family), family)


@pytest.mark.parametrize("family", OTHERS)
def test_layers_of_other_families_quickly(family, tiny_models):
    folder = tiny_models.folder(family, onnx=False)
    check(load_model(folder, runtime="torch"), folder, family)


def first_layer(folder):
    """The model of transformers with the first layer alone."""
    # ESM's contacts, which do not fit, are unused.
    return reference_model(folder, num_hidden_layers=1, ignore_mismatched_sizes=True)


@pytest.mark.parametrize("family", ["bert", *LAST_NORMS])
def test_a_layer_says_what_the_model_would_if_it_ended_there(family, tiny_models):
    import torch

    folder = tiny_models.folder(family, onnx=False)
    model = load_model(folder, runtime="torch")
    ids = model.vocabulary.encode(texts_for(family, model.vocabulary.mask_token)[0]).ids
    with torch.no_grad():
        expected = first_layer(folder)(torch.tensor([ids])).logits[0].numpy()
    _, first, *_ = model.layer_states(np.array(ids))
    np.testing.assert_allclose(model.layer_logits(first, np.arange(len(ids))), expected, atol=1e-4)


def asked_of(model, text):
    """Arguments of `logits_at` for all tokens of a text."""
    ids = np.array(model.vocabulary.encode(text).ids)
    return ids[None], np.ones_like(ids)[None], np.zeros_like(ids), np.arange(len(ids))


def in_int8(source, target):
    onnx.save(dynamic_int8(onnx.load(source)), target)


TEXT = "The [MASK] of France is a [MASK]."


def test_a_layer_of_a_dynamic_int8_graph(variant, tiny_models, tmp_path):
    """It says what the first layer alone would, exported and quantized in the same way."""
    model = load_model(variant(in_int8))
    assert model.signature.precision == "int8"
    short = shutil.copytree(tiny_models.folder("bert", onnx=False), tmp_path / "short")
    shutil.rmtree(short / "onnx")
    first_layer(short).save_pretrained(short)
    in_int8(export_onnx(short), short / "onnx" / "model.onnx")
    (ids, *_, cols), alone = asked_of(model, TEXT), load_model(short, runtime="onnx")
    _, first, last = model.layer_states(ids[0])
    expected = alone.logits_at(*asked_of(alone, TEXT))
    np.testing.assert_allclose(model.layer_logits(first, cols), expected, atol=1e-4)
    expected = model.logits_at(*asked_of(model, TEXT))
    np.testing.assert_allclose(model.layer_logits(last, cols), expected, atol=1e-4)


def test_graphs_of_a_fixed_size(exported, loaded):
    text = "The [MASK] of France is a [MASK] on a river."
    expected_lens = layers(loaded("bert", "torch"), text)
    for changes in ({"batch": 2}, {"length": 48}):
        lens = layers(load_model(exported("bert", **changes)), text)
        for token, expected_token in zip(lens.positions, expected_lens.positions, strict=True):
            for guess, expected_guess in zip(token.layers, expected_token.layers, strict=True):
                assert guess.entropy_nats == pytest.approx(expected_guess.entropy_nats, abs=1e-4)


def test_a_graph_that_does_not_show_its_layers_says_so(variant, copy):
    """Embeddings that are added once more behind the last layer go around all others."""

    def around(source, target):
        model = onnx.load(source)
        norms = [node for node in model.graph.node if node.op_type == "LayerNormalization"]
        first, last = norms[0].output[0], norms[-2].output[0]  # the last one is of the head
        for node in model.graph.node:
            node.input[:] = ["both" if name == last else name for name in node.input]
        at = list(model.graph.node).index(norms[-2]) + 1
        model.graph.node.insert(at, helper.make_node("Add", [first, last], ["both"]))
        onnx.save(model, target)

    model = load_model(variant(around))
    assert fill(model, "a [MASK]").masks
    with pytest.raises(ModelError, match="does not show where its layers end"):
        layers(model, "a [MASK]")
    folder = copy()
    config = folder / "config.json"
    config.write_text(
        config.read_text().replace('"num_hidden_layers": 2', '"num_hidden_layers": 3')
    )
    with pytest.raises(ModelError, match="does not show where its layers end"):
        layers(load_model(folder, runtime="onnx"), "a [MASK]")
    with pytest.raises(ModelError, match="does not show its layers"):
        layers(TableModel(1), "the [MASK] .")


def small_model(config, folder, tokenizer_of):
    """Random weights of an architecture, with the tokenizer of another folder."""
    from transformers import AutoModelForMaskedLM

    with quiet():
        model = AutoModelForMaskedLM.from_config(config)
        model.save_pretrained(folder)
    for path in tokenizer_of.glob("token*.json"):
        shutil.copy(path, folder)
    text = (folder / "config.json").read_text()
    text = text.replace("BartForConditionalGeneration", "BartForMaskedLM")
    (folder / "config.json").write_text(text)
    return load_model(folder, runtime="torch")


@pytest.mark.parametrize("kind", ["bart", "funnel", "reformer"])
def test_states_that_are_not_of_each_token_are_refused(kind, tiny_models, tmp_path):
    """transformers has none of BART, pooled ones of Funnel, half as wide ones of Reformer."""
    from transformers import AutoConfig

    sizes = {"vocab_size": 300, "hidden_size": 32, "pad_token_id": 0, "max_position_embeddings": 64}
    heads = {"num_attention_heads": 4, "attention_head_size": 8, "feed_forward_size": 32}
    shapes = {
        "bart": {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1},
        "funnel": {"d_model": 32, "block_sizes": [1, 1], "n_head": 4, "d_head": 8, "d_inner": 32},
        "reformer": {"attn_layers": ["local"], "axial_pos_embds": False, **heads},
    }
    config = AutoConfig.for_model(kind, **sizes | shapes[kind], is_decoder=False)
    model = small_model(config, tmp_path, tiny_models.without_onnx("bert"))
    filling = fill(model, "The [MASK] of France is a [MASK].")
    assert len(filling.masks) == 2
    with pytest.raises(ModelError, match="does not show a state of each token behind each layer"):
        layers(model, filling.encoding.text)


def test_pooled_states_of_a_graph_are_refused(loaded, monkeypatch):
    """As of Funnel, whose exports run at the length of their example alone."""
    model = loaded("bert", "onnx")
    pooled = {"h_0": np.zeros((1, 7, 32)), "h_1": np.zeros((1, 4, 32))}
    monkeypatch.setattr(model, "_call", lambda *_: pooled)
    with pytest.raises(ModelError, match="does not show where its layers end"):
        model.layer_states(np.arange(7))


def test_a_text_without_a_mask_is_read_as_it_stands(loaded):
    model = loaded("bert", "onnx")
    lens = layers(model, "the cat sat on the mat", top_k=2)
    assert [position.position for position in lens.positions] == list(range(len(lens.encoding)))
    assert [position.token for position in lens.positions] == list(lens.encoding.tokens)
    for token, token_id in zip(lens.positions, lens.encoding.ids, strict=True):
        for guess in token.layers:
            assert guess.true.token_id == token_id
            leads = [position for position in guess.candidates if position.token_id == token_id]
            assert leads == ([guess.true] if guess.true.rank <= 2 else [])
    assert lens.to_dict()["positions"][0]["layers"][0]["true"]["rank"] >= 1
    masked = layers(model, "the [MASK] sat on [MASK]", mask=1, word="cat")
    assert [position.position for position in masked.positions] == [5]
    assert {position.true.word for position in masked.positions[0].layers} == {"cat"}
    assert "true" not in layers(model, "a [MASK]").to_dict()["positions"][0]["layers"][0]


def test_layers_of_a_static_int8_graph(variant, quantize_qdq, loaded):
    """Its embeddings are those in full precision; behind the last layer stands its own answer."""
    model, full = load_model(variant(quantize_qdq)), loaded("bert", "torch")
    ids, *asked = asked_of(model, TEXT)
    states, (first, *_) = model.layer_states(ids[0]), full.layer_states(ids[0])
    assert len(states) == 3
    np.testing.assert_allclose(states[0][0], first, atol=0.05)
    expected = model.logits_at(ids, *asked)
    np.testing.assert_allclose(model.layer_logits(states[-1], asked[-1]), expected, atol=1e-4)
