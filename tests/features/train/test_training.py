"""The loop on tiny models: it learns, it resumes, its parts agree with plain references."""

import json
import shutil
import signal
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from features.train.small_training import STEPS, card, run, small
from typer.testing import CliRunner

from fillmask_ui.cli.main import app
from fillmask_ui.errors import DataError, FillmaskError, OptionError
from fillmask_ui.features.train import command as train_command
from fillmask_ui.features.train.torch_weights import load_weights
from fillmask_ui.features.train.training_run import SHARES, RunRequest, prepare, read_log


@pytest.fixture
def request_of(text_file, config_file):
    """What a run in a folder is asked for: by default what the run made once was asked for."""

    def make(folder, **changes):
        asked = RunRequest([str(text_file)], folder, config=config_file())
        return replace(asked, **changes)

    return make


@pytest.fixture
def copied(trained, tmp_path):
    """A copy of the finished run, to go on with."""
    return shutil.copytree(trained, tmp_path / "copied")


def going_on(**changes):
    """The recipe of the finished run, or one by which it may go on."""
    return small(steps=STEPS, validation_segments=300, **changes)


def test_the_loss_falls_and_the_folder_is_a_hugging_face_model(
    trained, tmp_path, text_file, config_file
):
    from transformers import pipeline

    by_adamw = read_log(trained / "log.jsonl")
    muon, by_muon = run(tmp_path, text_file, config_file(), small(steps=30, optimizer="muon"))
    assert by_adamw[-1].train_nll_nats < by_adamw[0].train_nll_nats - 0.5
    losses = [row.train_nll_nats for row in by_muon]
    assert np.mean(losses[-5:]) < np.mean(losses[:3]) - 0.5
    assert by_muon[-1].validation_nll_nats < losses[0] - 0.5
    assert by_muon[-1].rate < 0.05 * max(row.rate for row in by_muon)
    assert read_log(muon.log) == by_muon
    for name in ("log.jsonl", "loss.html", "run.json", "checkpoint.pt", "model.safetensors"):
        assert (trained / name).stat().st_size > 0
    assert "plotly" in (trained / "loss.html").read_text(encoding="utf-8")
    assert len(pipeline("fill-mask", model=str(trained))("the cat [MASK] the house.")) == 5


@pytest.mark.parametrize(("optimizer", "dropout"), [("muon", 0.0), ("adamw", 0.1)])
def test_a_resumed_run_equals_the_uninterrupted_one(
    tmp_path, text_file, config_file, request_of, optimizer, dropout
):
    recipe = small(optimizer=optimizer, checkpoint_minutes=1e-9, whole_word=True)
    config = config_file(hidden_dropout_prob=dropout)
    _, whole = run(tmp_path / "whole", text_file, config, recipe)
    request = request_of(tmp_path / "parts", config=config, vocabulary_size=200)
    shutil.copytree(tmp_path / "whole" / "tokenizer", tmp_path / "parts" / "tokenizer")
    interrupted = prepare(request, recipe).rows(log_every=1)
    for _ in range(5):
        next(interrupted)
    interrupted.close()
    with (tmp_path / "parts" / "log.jsonl").open("a", encoding="utf-8") as log:
        log.write('{"step": 6, "elap')  # as if it was killed in the middle of a line
    assert len(read_log(tmp_path / "parts" / "log.jsonl")) == 5
    resumed = prepare(request, recipe)
    assert resumed.resumed
    assert resumed.trainer.state.step == 5
    rows = list(resumed.rows(log_every=1))
    assert [row.train_nll_nats for row in rows] == [row.train_nll_nats for row in whole[5:]]
    assert rows[-1].validation_nll_nats == whole[-1].validation_nll_nats
    assert [row.step for row in read_log(resumed.log)] == list(range(1, 13))


def test_a_trimmed_run_keeps_its_tokens_when_the_text_changes(tmp_path, trained, sentences):
    text = tmp_path / "text.txt"
    text.write_text("\n".join(line for line in sentences if "remembers" not in line))
    size = load_weights(trained).model.config.vocab_size - 30
    request = RunRequest([str(text)], tmp_path / "run", init=str(trained), vocabulary_size=size)
    list(prepare(request, small(steps=2)).rows())
    kept = load_weights(tmp_path / "run").tokenizer.get_vocab()
    assert len(kept) == size
    text.write_text("\n".join(line for line in sentences if "remembers" in line))
    again = prepare(request, small(steps=3)).trainer
    assert again.state.step == 2
    assert again.tokenizer.get_vocab() == kept
    anew = prepare(replace(request, output=tmp_path / "anew"), small(steps=3)).trainer
    assert anew.tokenizer.get_vocab() != kept
    assert prepare(replace(request, vocabulary_size=None), small(steps=3)).trainer.state.step == 2
    with pytest.raises(OptionError, match=f"has a vocabulary of {size}"):
        prepare(replace(request, vocabulary_size=size - 1), small(steps=3))


def test_a_run_that_would_be_another_is_refused(copied, request_of, config_file):
    request = request_of(copied)
    for changes, recipe, readme in (
        ({"config": config_file("roberta")}, {}, r"was started --config .*bert\.json"),
        ({"config": None, "init": "embedded"}, {}, "started without --init"),
        ({"vocabulary_size": 120}, {}, "leave --vocabulary-size out"),
        ({}, {"batch_blocks": 5}, "batch_blocks was 4"),
    ):
        with pytest.raises(FillmaskError, match=readme):
            prepare(replace(request, **changes), going_on(**recipe))
    size = load_weights(copied).model.config.vocab_size
    assert prepare(replace(request, vocabulary_size=size), going_on()).resumed
    checkpoint = copied / "checkpoint.pt"
    checkpoint.write_bytes(b"something else")
    with pytest.raises(DataError, match="cannot be read as a training checkpoint"):
        prepare(request, going_on())


def test_the_log_holds_no_step_of_an_abandoned_attempt(tmp_path, request_of):
    request = request_of(tmp_path)
    abandoned = prepare(request, small(steps=40)).rows(log_every=1)
    for _ in range(6):
        next(abandoned)
    abandoned.close()
    prepared = prepare(request, small(steps=3))
    assert not prepared.resumed
    rows = list(prepared.rows(log_every=1))
    assert read_log(prepared.log) == rows
    assert [row.step for row in rows] == [1, 2, 3]
    prepared.log.write_text('{"step": 1}\n')
    with pytest.raises(DataError, match=r"log\.jsonl: elapsed_seconds: field required"):
        read_log(prepared.log)


@pytest.fixture
def usual_interruption():
    """Where the tests run in a shell's background, SIGINT is ignored; here it is as in a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("usual_interruption")
def test_ctrl_c_keeps_the_step_and_the_same_command_goes_on(
    tmp_path, train_arguments, request_of, monkeypatch
):
    def press(row):
        if row.step == 10:
            signal.raise_signal(signal.SIGINT)
        return ""

    monkeypatch.setattr(train_command, "row_text", press)
    result = CliRunner().invoke(app, [*train_arguments, str(tmp_path)])
    assert result.exit_code == 130, result.output
    assert "stopped; step 11 is in" in result.output
    assert not (tmp_path / "model.safetensors").exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    resumed = prepare(request_of(tmp_path), small(steps=13, validation_segments=300))
    assert resumed.trainer.state.step == 11
    assert [row.step for row in resumed.rows()] == [13]
    assert [row.step for row in read_log(tmp_path / "log.jsonl")] == [10, 11, 13]
    # A second Ctrl-C interrupts at once.
    with train_command.interruption() as stop:
        assert not stop()
        signal.raise_signal(signal.SIGINT)
        assert stop()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_the_end_is_the_best_average_with_the_start(tmp_path, trained, request_of):
    request = request_of(tmp_path / "b", config=None, init=str(trained))
    prepared = prepare(request, small(steps=10, learning_rate=0.03, blend=True))
    start = deepcopy(prepared.trainer.model.state_dict())
    last = list(prepared.rows())[-1]
    trials = json.loads((tmp_path / "b" / "blend.json").read_text())
    assert sorted(one["share"] for one in trials) == sorted(SHARES)
    best = min(trials, key=lambda one: one["nll_nats"])
    assert trials[0] == best
    whole = next(one for one in trials if one["share"] == 1)
    assert whole["nll_nats"] == pytest.approx(last.validation_nll_nats)
    saved = load_weights(tmp_path / "b").model.state_dict()
    stored = torch.load(tmp_path / "b" / "checkpoint.pt", weights_only=True)["model"]
    for name, tensor in saved.items():
        expected = (1 - best["share"]) * start[name] + best["share"] * stored[name]
        torch.testing.assert_close(tensor, expected)
    readme = card(tmp_path / "b")
    assert f"{best['share']:.0%} of the trained ones was best" in readme
    assert f"| 100% | {whole['nll_nats']:.3f} | {whole['top1']:.1%} |" in readme
    with pytest.raises(OptionError, match="--init"):
        prepare(request_of(tmp_path / "c"), small(blend=True))


def test_unusable_inputs_have_a_message_and_leave_nothing(tmp_path, request_of):
    bad, none = tmp_path / "bad.json", tmp_path / "none.json"
    bad.write_text('{"model_type": "resnet"}')
    none.write_text("{}")
    for changes, recipe in (
        ({"config": None, "init": str(tmp_path)}, {}),
        ({"config": bad, "vocabulary_size": 200}, {}),
        ({"config": none, "vocabulary_size": 200}, {}),
        ({}, {"device": "tpu9"}),
        ({}, {"batch_blocks": 4000}),
        ({}, {"block_tokens": 2}),
    ):
        with pytest.raises(FillmaskError):
            prepare(request_of(tmp_path / "new", **changes), small(**recipe))
        assert not (tmp_path / "new").exists()
    for changes in ({"config": None}, {"text": []}):
        with pytest.raises(OptionError):
            request_of(tmp_path, **changes)


def test_time_decides_the_decay(tmp_path, request_of):
    """With a clock of ten seconds a step, one minute is six steps."""
    request = request_of(tmp_path, vocabulary_size=200)
    trainer = prepare(request, small(steps=None, minutes=1.0, warmup=0.0)).trainer
    ticks = iter(range(0, 10_000, 10))
    trainer.clock = lambda: float(next(ticks))
    rows = list(trainer.run(log_every=1))
    assert [row.step for row in rows] == [1, 2, 3, 4, 5, 6]
    expected = [5e-3 * (1 - step / 6) for step in range(6)]
    assert [row.rate for row in rows] == pytest.approx(expected)
