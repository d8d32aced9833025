"""What loads is what was saved: every tensor of the encoder and its head, or a refusal by name.

The outside reference is transformers: what it reads of the same files, and what it leaves out.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from models.conftest import transformers_output
from safetensors.torch import load_file, save_file
from tiny_models import batch_of, quiet, reference_model, reference_tokenizer, texts_for

from fillmask_ui.errors import ModelError
from fillmask_ui.models import load_model


@pytest.fixture
def saved(tiny_models, tmp_path):
    """`saved(family, change, **settings)`: a folder with changed tensors and config.json."""

    def make(family, change=lambda tensors: tensors, **settings) -> Path:
        folder = tmp_path / f"{family}-{len([*tmp_path.iterdir()])}"
        shutil.copytree(tiny_models.without_onnx(family), folder)
        path, config = folder / "model.safetensors", folder / "config.json"
        save_file(change(load_file(path)), path, metadata={"format": "pt"})
        config.write_text(json.dumps(json.loads(config.read_text()) | settings))
        return folder

    return make


def adding(*names):
    return lambda tensors: tensors | {name: torch.ones(3, 4) for name in names}


def prefixed(prefix):
    return lambda tensors: {f"{prefix}{name}": tensor for name, tensor in tensors.items()}


def without_encoder_name(tensors):
    """As the encoder alone would save them."""
    more = adding("bert.encoder.layer.0.attention.self.distance_embedding.weight")(tensors)
    return {name.removeprefix("bert."): tensor for name, tensor in more.items()}


def logits_of_transformers(folder):
    """Of the texts of BERT, with the batch."""
    tokenizer = reference_tokenizer(folder)
    with quiet():
        batch = tokenizer(texts_for("bert", tokenizer.mask_token), padding=True)
    ids, mask = np.array(batch["input_ids"]), np.array(batch["attention_mask"])
    with torch.no_grad():
        output = reference_model(folder)(
            input_ids=torch.tensor(ids), attention_mask=torch.tensor(mask)
        )
    return output.logits.numpy()


def assert_equals_transformers(folder, reference=None):
    model = load_model(folder, runtime="torch")
    batch = batch_of(model.vocabulary, texts_for("bert", model.vocabulary.mask_token))
    expected = transformers_output(reference or folder, batch).logits.numpy()
    got = model.logits_at(*batch)
    np.testing.assert_allclose(got, expected[batch.rows, batch.cols], atol=1e-4)


DISTANCES = "bert.encoder.layer.0.attention.self.distance_embedding.weight"
ADAPTER = "bert.encoder.layer.1.output.adapters.news.adapter_down.0.weight"


@pytest.mark.parametrize(
    ("family", "change", "settings", "named"),
    [
        ("bert", adding(DISTANCES), {"position_embedding_type": "relative_key"}, DISTANCES),
        ("bert", adding(DISTANCES), {"position_embedding_type": "relative_key_query"}, DISTANCES),
        ("bert", without_encoder_name, {}, DISTANCES.removeprefix("bert.")),
        ("bert", adding(ADAPTER), {}, ADAPTER),
        ("bert", adding("cls.predictions.gate.weight"), {}, "cls.predictions.gate.weight"),
        ("roberta", adding("lm_head.gate.weight"), {}, "lm_head.gate.weight"),
        ("deberta-v2", adding("deberta.encoder.conv.conv.weight"), {}, "conv.conv.weight"),
        ("deberta-v2", adding(), {"relative_attention": False}, "encoder.rel_embeddings.weight"),
        ("modernbert", adding("model.layers.1.attn.Wqkv.bias"), {}, "layers.1.attn.Wqkv.bias"),
    ],
)
def test_tensors_that_the_network_does_not_use(saved, family, change, settings, named):
    folder = saved(family, change, **settings)
    from transformers import AutoModelForMaskedLM

    # transformers reads the others and answers all the same, as if these were not there.
    with quiet():
        _, report = AutoModelForMaskedLM.from_pretrained(folder, output_loading_info=True)
    left = report["unexpected_keys"]
    assert any(name.endswith(named) for name in left)
    with pytest.raises(ModelError, match=rf"does not use, such as .*{named}") as caught:
        load_model(folder)
    assert "\n" not in str(caught.value)


def test_positions_that_no_tensor_betrays(saved):
    folder, plain = saved("bert", position_embedding_type="alibi"), saved("bert")
    np.testing.assert_array_equal(*map(logits_of_transformers, (folder, plain)))
    with pytest.raises(ModelError, match='"position_embedding_type": "alibi", which a BertFor'):
        load_model(folder)


@pytest.mark.parametrize(
    ("family", "names"),
    [
        (
            "bert",
            "bert.pooler.dense.weight cls.seq_relationship.weight classifier.weight "
            "bert.embeddings.position_ids",
        ),
        ("roberta", "roberta.pooler.dense.bias roberta.embeddings.token_type_ids"),
        ("deberta-v2", "deberta.embeddings.position_embeddings.weight lm_predictions.lm_head.bias"),
        (
            "esm",
            "esm.embeddings.position_embeddings.weight esm.pooler.dense.weight",
        ),
    ],
)
def test_harmless_tensors_stay(saved, tiny_models, family, names):
    folder = saved(family, adding(*names.split()))
    model = load_model(folder)
    batch = batch_of(model.vocabulary, texts_for(family, model.vocabulary.mask_token))
    expected = transformers_output(tiny_models.without_onnx(family), batch).logits.numpy()
    np.testing.assert_allclose(model.logits_at(*batch), expected[batch.rows, batch.cols], atol=1e-4)


@pytest.mark.parametrize("prefix", ["_orig_mod.", "module.", "module._orig_mod."])
def test_weights_of_a_wrapped_model(saved, tiny_models, prefix):
    """As `torch.compile` and `DataParallel` name them in their state_dict."""
    folder = saved("bert", prefixed(prefix))
    assert_equals_transformers(folder, tiny_models.without_onnx("bert"))


def test_another_prefix_is_refused(saved):
    with pytest.raises(ModelError, match=r"lacks 44 weights of a BertForMaskedLM, such as bert\."):
        load_model(saved("bert", prefixed("student.")))


def test_the_layout_of_debertas_head(saved):
    from transformers import AutoConfig, DebertaV2ForMaskedLM

    folder = saved("deberta-v2", legacy=False)
    torch.manual_seed(5)
    with quiet():
        DebertaV2ForMaskedLM(AutoConfig.from_pretrained(folder)).save_pretrained(folder)
    assert_equals_transformers(folder)
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"legacy": false', '"legacy": true'))
    with pytest.raises(ModelError, match=r'write "legacy": false into its config\.json'):
        load_model(folder)


@pytest.mark.parametrize("stored", ["cls.predictions.bias", "cls.predictions.decoder.bias"])
def test_a_bias_that_was_stored_once_beside_untied_embeddings(saved, stored):
    """As transformers 4 saved it; version 5 reads both names, and they are equal there."""
    names = {"cls.predictions.bias", "cls.predictions.decoder.bias"}
    drawn = torch.randn(300, 32, generator=torch.Generator().manual_seed(3))

    def untied(tensors):
        bias = tensors["cls.predictions.bias"]
        assert bias.abs().max() > 0.1
        return tensors | dict.fromkeys(names, bias) | {"cls.predictions.decoder.weight": drawn}

    def once(tensors):
        return {
            name: tensor for name, tensor in untied(tensors).items() if name not in names - {stored}
        }

    def twice(tensors):
        return {name: tensor.clone() for name, tensor in untied(tensors).items()}

    full = saved("bert", twice, tie_word_embeddings=False)
    assert_equals_transformers(saved("bert", once, tie_word_embeddings=False), full)


@pytest.mark.parametrize("header", [b"[1, 2]", b"null", b"{}x", b'{"a": 1}'])
def test_headers_of_safetensors_that_are_none(saved, header):
    folder = saved("bert")
    path = folder / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(ModelError, match=r"model\.safetensors cannot be read as a model: "):
        load_model(folder)
