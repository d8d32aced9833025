"""Both heads of BERT's pre-training, against transformers' own loss of a real checkpoint."""

import numpy as np
import pytest
from explore_page import session_of
from features.course.lesson_figures import show_figure
from tiny_models import quiet, reference_model, reference_tokenizer

from fillmask_ui.errors import ModelError
from fillmask_ui.features.course.masked_text import hide
from fillmask_ui.features.course.next_sentence import (
    FOLLOWS,
    RANDOM,
    next_probability,
    pair_loss,
    sentence_pair,
)
from fillmask_ui.features.course.pair_head import pair_logits, predicts_next
from fillmask_ui.models import load_model

FIRST, SECOND = "The cat sat on the mat.", "She walked to the river and the café in France."
SEED = 5  # hides several tokens of the two


@pytest.fixture(scope="module")
def pretrained(tiny_models, tmp_path_factory):
    """A folder with a tiny BertForPreTraining and its export with both outputs."""
    import torch
    from transformers import BertConfig, BertForPreTraining

    source = tiny_models.folder("bert", onnx=False)
    folder = tmp_path_factory.mktemp("pretrained")
    with quiet(), torch.random.fork_rng():
        reference_tokenizer(source).save_pretrained(folder)
        torch.manual_seed(4)
        model = BertForPreTraining(BertConfig.from_pretrained(source))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * (0.4 if parameter.dim() > 1 else 0.1))
        model.save_pretrained(folder)
    names = ("input_ids", "attention_mask", "token_type_ids")

    class Both(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model.eval()

        def forward(self, *inputs):
            result = self.model(**dict(zip(names, inputs, strict=True)))
            return result.prediction_logits, result.seq_relationship_logits

    example = torch.ones((2, 9), dtype=torch.int64)
    with quiet():
        torch.onnx.export(
            Both(),
            (example,) * 3,
            str(folder / "model.onnx"),
            input_names=list(names),
            output_names=["logits", "seq_relationship_logits"],
            dynamic_axes={name: {0: "b", 1: "t"} for name in (*names, "logits")},
            opset_version=18,
            dynamo=False,
        )
    return folder


@pytest.mark.parametrize("runtime", ["torch", "onnx"])
@pytest.mark.parametrize("truth", [FOLLOWS, RANDOM])
def test_both_losses_are_those_of_transformers(pretrained, runtime, truth):
    import torch
    from transformers import BertForPreTraining

    model = load_model(pretrained, runtime=runtime)
    assert predicts_next(model)
    pair = sentence_pair(model, FIRST, SECOND)
    with quiet(), torch.no_grad():
        reference = BertForPreTraining.from_pretrained(pretrained).eval()
        plain = reference_tokenizer(pretrained)(FIRST, SECOND, return_tensors="pt")
        assert list(pair.encoding.ids) == plain["input_ids"][0].tolist()
        assert list(pair.segments) == plain["token_type_ids"][0].tolist()
        order = reference(**plain).seq_relationship_logits.softmax(-1)[0]
        hidden = hide(pair.encoding, model.vocabulary, SEED)
        labels = torch.full_like(plain["input_ids"], -100)
        labels[0, hidden.cols] = torch.tensor(hidden.true_ids)
        inputs = {**plain, "input_ids": torch.tensor(hidden.input_ids)[None]}
        total = reference(**inputs, labels=labels, next_sentence_label=torch.tensor([truth])).loss
        alone = reference(**inputs).prediction_logits[0]
        masked = torch.nn.functional.cross_entropy(alone, labels[0])
    assert next_probability(model, pair) == pytest.approx(float(order[FOLLOWS]), abs=1e-4)
    loss = pair_loss(model, pair, SEED, truth, 0.5)
    assert len(loss.hidden) >= 2
    assert loss.masked_nats == pytest.approx(float(masked), abs=1e-4)
    assert loss.total_nats == pytest.approx(float(total), abs=1e-4)


@pytest.mark.parametrize("runtime", ["torch", "onnx"])
def test_without_the_head_segments_are_zeros_in_transformers_too(runtime, loaded, tiny_models):
    """With the segments that BERT is told the loss is another one."""
    import torch

    model = loaded("bert", runtime)
    assert not predicts_next(model)
    pair = sentence_pair(model, FIRST, SECOND)
    with pytest.raises(ModelError, match="no head for next sentence"):
        pair_logits(model, np.array(pair.encoding.ids), np.array(pair.segments), np.array([1]))
    hidden = hide(pair.encoding, model.vocabulary, SEED)
    ids, labels = torch.tensor(hidden.input_ids)[None], torch.full((1, len(pair.encoding)), -100)
    labels[0, hidden.cols] = torch.tensor(hidden.true_ids)
    reference = reference_model(tiny_models.folder("bert"))
    with torch.no_grad():
        types = torch.tensor([pair.segments])
        zeros, predicted = (
            float(reference(input_ids=ids, token_type_ids=segments, labels=labels).loss)
            for segments in (torch.zeros_like(types), types)
        )
    loss = pair_loss(model, pair, SEED, RANDOM, 0.7)
    assert loss.order_nats == pytest.approx(-np.log(0.3))
    assert loss.masked_nats == pytest.approx(zeros, abs=1e-4)
    assert loss.masked_nats != pytest.approx(predicted, abs=1e-3)
    for name in ("sentence_pair", "pretraining_loss"):
        assert "every token as part of segment A" in shown(model, name)


def shown(model, name):
    """The first piece of a figure of the chapter."""
    values = {"first": FIRST, "second": SECOND, "probability": "0.7", "seed": str(SEED)}
    return next(iter(show_figure(session_of(table=model), model, name, **values).pieces.values()))
