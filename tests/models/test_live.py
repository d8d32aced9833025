"""Models in memory: those of transformers, trainers and pipelines, as `load_model` takes them."""

import copy

import numpy as np
import pytest
import torch
from tiny_models import EVERY_FAMILY, batch_of, quiet, texts_for

from fillmask_ui import fill
from fillmask_ui.errors import FillmaskError
from fillmask_ui.models import load_model


@pytest.fixture
def live(tiny_models):
    """`live(family)`: a model in training and its tokenizer, by transformers."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    def make(family: str = "bert", loader=AutoModelForMaskedLM):
        folder = tiny_models.folder(family, onnx=False)
        with quiet():
            model = loader.from_pretrained(folder, dtype=torch.float32)
            return model.train(), AutoTokenizer.from_pretrained(folder)

    return make


@pytest.mark.parametrize("family", EVERY_FAMILY)
def test_equals_the_folder_and_leaves_the_model_as_it_was(family, live, loaded):
    """Digit for digit; in training it has dropout, which is off for the time of a call."""
    module, tokenizer = live(family)
    module.base_model.eval()  # but not its head: each part keeps its own mode
    modes = [part.training for part in module.modules()]
    tokenizer.enable_padding = tokenizer(["a", "a a a"], padding=True)  # of its owner alone
    live, stored = load_model(module, tokenizer=tokenizer), loaded(family, "torch")
    batch = batch_of(stored.vocabulary, texts_for(family, stored.vocabulary.mask_token))
    np.testing.assert_array_equal(live.logits_at(*batch), stored.logits_at(*batch))
    layers = zip(*(model.layer_states(batch.input_ids[1]) for model in (live, stored)), strict=True)
    for states in layers:
        np.testing.assert_array_equal(*states)
        cols = np.array([1, 0])
        np.testing.assert_array_equal(
            *(model.layer_logits(states[0], cols) for model in (live, stored))
        )
    assert live.max_tokens == stored.max_tokens
    assert [part.training for part in module.modules()] == modes
    assert not any(part._forward_hooks for part in module.modules())
    copy.deepcopy(module)


def test_signed_anew_after_training(live):
    module, tokenizer = live()
    model = load_model(module, tokenizer=tokenizer)
    same = load_model(copy.deepcopy(module), tokenizer=tokenizer)
    before = fill(model, "the [MASK]")
    assert before.signature.sha256 == same.signature.sha256
    inputs = tokenizer("the cat", return_tensors="pt")
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    module(**inputs, labels=inputs["input_ids"]).loss.backward()
    optimizer.step()
    after = fill(model, "the [MASK]")
    assert after.signature.sha256 not in (before.signature.sha256, same.signature.sha256)
    assert after.masks != before.masks
    assert after.signature == load_model(module, tokenizer=tokenizer).signature


def test_trainers_pipelines_and_places(live, tiny_models):
    from transformers import Trainer, pipeline

    module, tokenizer = live()
    trainer = object.__new__(Trainer)  # whose making needs one more library
    trainer.model, trainer.processing_class = module, tokenizer
    with quiet():
        filled = pipeline("fill-mask", model=module, tokenizer=tokenizer)
    folder = tiny_models.folder("bert")
    references = (trainer, {}), (filled, {}), (module, {}), (module, {"tokenizer": folder})
    results = [fill(load_model(reference, **more), "the [MASK]") for reference, more in references]
    assert all(filling == results[0] for filling in results)


def test_wrapped_and_compiled_models_are_the_model_inside(live):
    """Digit for digit, and without the compiler, which would take its time for each shape."""
    module, tokenizer = live()
    expected = fill(load_model(module, tokenizer=tokenizer), "the [MASK]")
    parallel = torch.nn.DataParallel(module)
    for wrapped in (torch.compile(module), parallel, torch.compile(parallel)):
        assert fill(load_model(wrapped, tokenizer=tokenizer), "the [MASK]") == expected

    def refuse(*_):
        raise AssertionError("compiled")

    module.compile(backend=refuse)
    compiled = module._compiled_call_impl
    assert fill(load_model(module, tokenizer=tokenizer), "the [MASK]") == expected
    assert module._compiled_call_impl is compiled


def test_models_that_pytorch_has_quantized(live):
    """The outside reference: the quantized module itself, called with one text at a time."""
    module, tokenizer = live()
    quantize = torch.ao.quantization.quantize_dynamic
    with quiet():
        quantized, half = (
            quantize(module.eval(), {torch.nn.Linear}, dtype=dtype)
            for dtype in (torch.qint8, torch.float16)
        )
    model = load_model(quantized, tokenizer=tokenizer)
    assert model.signature.precision == "int8" and model.signature.parameters is None
    assert model.runs_alone and "activations are quantized text by text" in model.signature.notes
    texts = texts_for("bert", "[MASK]")
    batch = batch_of(model.vocabulary, texts)
    for live in (model, load_model(half, tokenizer=tokenizer)):
        with torch.no_grad():
            each = [
                live._model(**tokenizer(text, return_tensors="pt")).logits[0].numpy()
                for text in texts
            ]
        expected = [each[row][col] for row, col in zip(batch.rows, batch.cols, strict=True)]
        np.testing.assert_allclose(live.logits_at(*batch), expected, atol=1e-4)
    with torch.no_grad():
        plain = module(**tokenizer(texts[0], return_tensors="pt")).logits[0].numpy()
    assert np.abs(plain[batch.cols[0]] - model.logits_at(*batch)[0]).max() > 1e-3
    with quiet():
        same = quantize(module, {torch.nn.Linear}, dtype=torch.qint8)
        torch.nn.init.zeros_(module.get_output_embeddings().weight)
        changed = quantize(module, {torch.nn.Linear}, dtype=torch.qint8)
    hashes = [
        load_model(module, tokenizer=tokenizer).signature.sha256 for module in (same, changed)
    ]
    assert hashes[0] == model.signature.sha256 != hashes[1]


def test_what_is_no_model_is_refused_in_one_line(live):
    from transformers import (
        AutoModel,
        AutoModelForSequenceClassification,
        BertConfig,
        BertForMaskedLM,
    )

    module, tokenizer = live()
    encoder, classifier = live(loader=AutoModel), live(loader=AutoModelForSequenceClassification)
    for reference, more, message in (
        (torch.nn.Linear(2, 2), {}, "type Linear: give a name or a folder"),
        (5, {}, "type int: give"),
        (module, {"device": "cpu"}, "device: for models that are read from files"),
        (module, {"tokenizer": 5}, "needs its tokenizer, and this is of the type int"),
        (
            BertForMaskedLM(BertConfig(num_hidden_layers=1)),
            {},
            "needs its tokenizer, and none was found",
        ),
        (encoder[0], {"tokenizer": tokenizer}, "BertModel gives no logits over its vocabulary"),
        (classifier[0], {"tokenizer": tokenizer}, "Classification gives no logits"),
        ("embedded", {"tokenizer": tokenizer}, "goes with a model in memory"),
    ):
        with pytest.raises(FillmaskError, match=message) as caught:
            load_model(reference, **more)
        assert len(str(caught.value)) < 250 and "\n" not in str(caught.value)
