"""The loop on tiny models: it learns, it resumes, its parts agree with plain references."""

import json

import numpy as np
import pytest
import torch
from small_training import run, small

from fillmask_ui.errors import FillmaskError, OptionError
from fillmask_ui.onnx_tools.export import export_onnx
from fillmask_ui.show.charts.training import loss_figure
from fillmask_ui.training.blend import SHARES, copy_weights
from fillmask_ui.training.corpus import CorpusPart
from fillmask_ui.training.optimizer import Optimizers
from fillmask_ui.training.run import RunRequest, prepare, read_log
from fillmask_ui.training.weights import load_weights, new_model


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_the_loss_falls(tmp_path, text_file, config_file, optimizer):
    recipe = small(steps=40, optimizer=optimizer)
    prepared, rows = run(tmp_path, text_file, config_file(), recipe)
    losses = [row.train_nll_nats for row in rows]
    assert np.mean(losses[-5:]) < np.mean(losses[:3]) - 0.5
    assert rows[-1].validation_nll_nats < losses[0] - 0.5
    assert rows[-1].rate < 0.05 * max(row.rate for row in rows)
    assert read_log(prepared.log) == rows


def test_time_decides_the_decay(tmp_path, text_file, config_file):
    """With a clock of ten seconds a step, one minute is six steps."""
    request = RunRequest(
        (CorpusPart(text_file),), tmp_path, config=config_file(), vocabulary_size=200
    )
    trainer = prepare(request, small(steps=None, minutes=1.0, warmup=0.0)).trainer
    ticks = iter(range(0, 10_000, 10))
    trainer.clock = lambda: float(next(ticks))
    rows = list(trainer.run(log_every=1))
    assert [row.step for row in rows] == [1, 2, 3, 4, 5, 6]
    expected = [5e-3 * (1 - step / 6) for step in range(6)]
    assert [row.rate for row in rows] == pytest.approx(expected)


def test_a_trained_folder_is_a_hugging_face_model(tmp_path, text_file, config_file):
    from transformers import pipeline

    run(tmp_path, text_file, config_file(), small(steps=2))
    best = pipeline("fill-mask", model=str(tmp_path))("the cat [MASK] the house.")
    assert len(best) == 5


def test_training_goes_on_from_weights_with_a_trimmed_vocabulary(tmp_path, text_file, config_file):
    first, _ = run(tmp_path / "a", text_file, config_file(), small(steps=30))
    before = first.trainer.validate().nll_nats
    size = first.trainer.model.config.vocab_size
    request = RunRequest(
        (CorpusPart(text_file),), tmp_path / "b", init=str(tmp_path / "a"), vocabulary_size=size - 5
    )
    prepared = prepare(request, small(steps=1))
    assert prepared.trainer.model.config.vocab_size == size - 5
    assert len(prepared.trainer.tokenizer) == size - 5
    assert prepared.trainer.validate().nll_nats == pytest.approx(before, abs=0.3)


def test_the_end_is_the_best_average_with_the_start(tmp_path, text_file, config_file):
    run(tmp_path / "a", text_file, config_file(), small(steps=20))
    source = (CorpusPart(text_file),)
    request = RunRequest(source, tmp_path / "b", init=str(tmp_path / "a"))
    prepared = prepare(request, small(steps=15, learning_rate=0.03, blend=True))
    start = copy_weights(prepared.trainer.model)
    last = list(prepared.rows())[-1]
    trials = json.loads((tmp_path / "b" / "blend.json").read_text())
    assert sorted(one["share"] for one in trials) == sorted(SHARES)
    best = min(trials, key=lambda one: one["nll_nats"])
    assert trials[0] == best
    whole = next(one for one in trials if one["share"] == 1)
    assert whole["nll_nats"] == pytest.approx(last.validation_nll_nats)
    saved = load_weights(tmp_path / "b").model.state_dict()
    trained = torch.load(tmp_path / "b" / "checkpoint.pt", weights_only=True)["model"]
    for name, tensor in saved.items():
        expected = (1 - best["share"]) * start[name] + best["share"] * trained[name]
        torch.testing.assert_close(tensor, expected)
    with pytest.raises(OptionError, match="--init"):
        run(tmp_path / "c", text_file, config_file(), small(blend=True))


def test_muon_takes_the_matrices_and_adamw_the_rest(tokenizer, config_file):
    model = new_model(config_file(), tokenizer)
    muon, adamw = Optimizers(model, "muon", 1e-3, 0.01).all
    assert isinstance(muon, torch.optim.Muon)
    embeddings = model.get_input_embeddings().weight
    assert any(p is embeddings for group in adamw.param_groups for p in group["params"])
    count = sum(len(group["params"]) for one in (muon, adamw) for group in one.param_groups)
    assert count == len(list(model.parameters()))


@pytest.mark.parametrize(
    "changes",
    [
        {"minutes": 1.0},
        {"steps": None},
        {"steps": 0},
        {"mask_share": 0.0},
        {"mask_share": 1.0},
        {"warmup": 1.0},
        {"learning_rate": 0.0},
        {"batch_blocks": 0},
        {"precision": "int3"},
        {"optimizer": "adam"},
    ],
)
def test_impossible_recipes_are_refused(changes):
    with pytest.raises(OptionError):
        small(**changes)


@pytest.mark.parametrize(
    ("patched", "error", "call"),
    [
        ("transformers.AutoTokenizer.from_pretrained", OSError, "load_weights"),
        ("torch.onnx.export", torch.onnx.OnnxExporterError, "export_onnx"),
    ],
)
def test_an_error_without_a_message_is_told_by_its_kind(
    tmp_path, tokenizer, config_file, monkeypatch, patched, error, call
):
    model = new_model(config_file(), tokenizer)

    def fail(*arguments, **options):
        raise error("")

    monkeypatch.setattr(patched, fail)
    calls = {
        "load_weights": lambda: load_weights("embedded"),
        "export_onnx": lambda: export_onnx(model),
    }
    with pytest.raises(FillmaskError, match=error.__name__):
        calls[call]()


def test_unusable_inputs_have_a_message(tmp_path, text_file, config_file):
    source = (CorpusPart(text_file),)
    bad = tmp_path / "bad.json"
    bad.write_text('{"model_type": "resnet"}')
    none = tmp_path / "none.json"
    none.write_text("{}")
    for request, recipe in (
        (RunRequest(source, tmp_path / "1", init=str(tmp_path)), small()),
        (RunRequest(source, tmp_path / "2", config=bad, vocabulary_size=200), small()),
        (RunRequest(source, tmp_path / "3", config=none, vocabulary_size=200), small()),
        (RunRequest(source, tmp_path / "4", config=config_file()), small(device="tpu9")),
        (RunRequest(source, tmp_path / "5", config=config_file()), small(batch_blocks=4000)),
        (RunRequest(source, tmp_path / "6", config=config_file()), small(block_tokens=2)),
    ):
        with pytest.raises(FillmaskError):
            prepare(request, recipe)
    with pytest.raises(OptionError):
        RunRequest(source, tmp_path)
    with pytest.raises(OptionError):
        RunRequest((), tmp_path, config=config_file())


def test_the_plot_holds_both_losses(tmp_path, text_file, config_file):
    _, rows = run(tmp_path, text_file, config_file(), small(steps=4, validation_minutes=1e-9))
    training, validation = loss_figure(rows).data
    assert list(training.x) == [row.tokens for row in rows]
    assert list(training.y) == [row.train_nll_nats for row in rows]
    assert list(validation.y) == [row.validation_nll_nats for row in rows]
    assert f"{rows[-1].train_nll_nats:.3f}" in loss_figure(rows).layout.meta["description"]
