"""A run that was interrupted goes on as if it had not been, or says why it cannot."""

import shutil
import signal
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from small_training import card, run, small
from typer.testing import CliRunner

from fillmask_ui.cli import train as train_command
from fillmask_ui.cli.main import app
from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.training.corpus import CorpusPart, tokenize
from fillmask_ui.training.run import RunRequest, prepare, read_log, read_request
from fillmask_ui.training.weights import new_model


@pytest.mark.parametrize(("optimizer", "dropout"), [("adamw", 0.0), ("muon", 0.0), ("adamw", 0.1)])
def test_a_resumed_run_equals_the_uninterrupted_one(
    tmp_path, text_file, config_file, optimizer, dropout
):
    recipe = small(optimizer=optimizer, checkpoint_minutes=1e-9)
    config = config_file(hidden_dropout_prob=dropout)
    _, whole = run(tmp_path / "whole", text_file, config, recipe)
    request = RunRequest(
        (CorpusPart(text_file),), tmp_path / "parts", config=config, vocabulary_size=200
    )
    shutil.copytree(tmp_path / "whole" / "tokenizer", tmp_path / "parts" / "tokenizer")
    interrupted = prepare(request, recipe).rows(log_every=1)
    for _ in range(5):
        next(interrupted)
    interrupted.close()
    resumed = prepare(request, recipe)
    assert resumed.resumed
    assert resumed.trainer.state.step == 5
    rows = list(resumed.rows(log_every=1))
    assert [row.train_nll_nats for row in rows] == [row.train_nll_nats for row in whole[5:]]
    assert rows[-1].validation_nll_nats == whole[-1].validation_nll_nats
    assert [row.step for row in read_log(resumed.log)] == list(range(1, 13))


def letters_and(words):
    """A WordPiece vocabulary."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "."]
    return list(dict.fromkeys([*special, *letters, *(f"##{c}" for c in letters), *words]))


def test_a_trimmed_run_keeps_its_tokens_when_the_text_changes(tmp_path, sentences, config_file):
    from transformers import AutoTokenizer

    rare = [f"zz{a}{b}" for a in "bdfgk" for b in "aeiou"]
    start = tmp_path / "start"
    start.mkdir()
    used = {word for line in sentences for word in line.replace(".", "").split()}
    (start / "vocab.txt").write_text("\n".join(letters_and([*rare, *sorted(used)])) + "\n")
    (start / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    tokenizer = AutoTokenizer.from_pretrained(start)
    torch.manual_seed(0)
    new_model(config_file(), tokenizer).save_pretrained(start)
    text = tmp_path / "text.txt"
    text.write_text("\n".join(sentences))
    size = len(tokenizer) - 15
    request = RunRequest(
        (CorpusPart(text),), tmp_path / "run", init=str(start), vocabulary_size=size
    )

    def loss(trainer):
        trainer.segments = tokenize(sentences[:50], trainer.tokenizer, 32)
        trainer.held = np.arange(50)
        return trainer.validate()

    first = prepare(request, small(steps=2))
    list(first.rows())
    kept = first.trainer.tokenizer.get_vocab()
    assert len(kept) == size
    before = loss(first.trainer)
    text.write_text("\n".join([*sentences, *[" ".join(rare[-10:])] * 50]))
    again = prepare(request, small(steps=3)).trainer
    assert again.state.step == 2
    assert again.tokenizer.get_vocab() == kept
    assert loss(again) == before
    assert prepare(replace(request, vocabulary_size=None), small(steps=3)).trainer.state.step == 2
    with pytest.raises(OptionError, match=f"has a vocabulary of {size}"):
        prepare(replace(request, vocabulary_size=size - 1), small(steps=3))


def test_a_resumed_run_keeps_its_start(tmp_path, text_file, config_file):
    first, _ = run(tmp_path / "a", text_file, config_file(), small(steps=1))
    with pytest.raises(OptionError, match=r"was started --config .*bert\.json"):
        run(tmp_path / "a", text_file, config_file("roberta"), small(steps=2))
    request = RunRequest((CorpusPart(text_file),), tmp_path / "a", config=config_file())
    with pytest.raises(OptionError, match="leave --vocabulary-size out"):
        prepare(replace(request, vocabulary_size=120), small(steps=2))
    size = len(first.trainer.tokenizer)
    assert prepare(replace(request, vocabulary_size=size), small(steps=2)).resumed
    with pytest.raises(OptionError, match="started without --init"):
        prepare(replace(request, config=None, init=str(tmp_path / "a")), small(steps=2))
    going_on = RunRequest((CorpusPart(text_file),), tmp_path / "b", init=str(tmp_path / "a"))
    list(prepare(going_on, small(steps=1)).rows())
    shutil.copytree(tmp_path / "a", tmp_path / "c")
    with pytest.raises(OptionError, match=r"was started --init .*a; ask for the same"):
        prepare(replace(going_on, init=str(tmp_path / "c")), small(steps=2))
    assert prepare(going_on, small(steps=2)).resumed


def test_weights_of_other_tokens_are_refused(tmp_path, text_file, config_file):
    prepared, _ = run(tmp_path, text_file, config_file(), small(steps=1))
    request = RunRequest((CorpusPart(text_file),), tmp_path, config=config_file())
    stored = torch.load(prepared.checkpoint, weights_only=True)
    torch.save(stored | {"vocabulary": "of another"}, prepared.checkpoint)
    with pytest.raises(DataError, match="belong to other tokens"):
        prepare(request, small(steps=2))
    del stored["vocabulary"]  # as earlier versions wrote it
    torch.save(stored, prepared.checkpoint)
    assert prepare(request, small(steps=2)).trainer.state.step == 1


def test_the_log_holds_no_step_of_an_abandoned_attempt(tmp_path, text_file, config_file):
    request = RunRequest((CorpusPart(text_file),), tmp_path, config=config_file())
    abandoned = prepare(request, small(steps=40)).rows(log_every=1)
    for _ in range(20):
        next(abandoned)
    abandoned.close()
    with (tmp_path / "log.jsonl").open("a", encoding="utf-8") as log:
        log.write('{"step": 21, "elap')  # as if it was killed in the middle of a line
    assert len(read_log(tmp_path / "log.jsonl")) == 20
    prepared = prepare(request, small(steps=5))
    assert not prepared.resumed
    rows = list(prepared.rows(log_every=1))
    assert read_log(prepared.log) == rows
    assert [row.step for row in rows] == [1, 2, 3, 4, 5]


@pytest.fixture
def usual_interruption():
    """Whatever the process that started the tests made of Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("usual_interruption")
def test_ctrl_c_keeps_the_step_and_the_same_command_goes_on(
    tmp_path, text_file, config_file, monkeypatch
):
    arguments = ["train", "--text", str(text_file), "--config", str(config_file()), "-o"]
    arguments += [str(tmp_path), "--steps", "13", "--vocabulary-size", "200", "--threads", "1"]
    arguments += ["--block-tokens", "32", "--batch-blocks", "4", "--precision", "fp32"]

    def press(row):
        if row.step == 10:
            signal.raise_signal(signal.SIGINT)
        return ""

    monkeypatch.setattr(train_command, "row_text", press)
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 130, result.output
    assert "stopped; step 11 is in" in result.output
    assert not (tmp_path / "model.safetensors").exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    request = RunRequest((CorpusPart(text_file),), tmp_path, config=config_file())
    resumed = prepare(request, small(steps=13, validation_segments=300))
    assert resumed.trainer.state.step == 11
    assert [row.step for row in resumed.rows()] == [13]
    assert [row.step for row in read_log(tmp_path / "log.jsonl")] == [10, 11, 13]


@pytest.mark.usefixtures("usual_interruption")
def test_a_second_ctrl_c_interrupts_at_once():
    with train_command.interruption() as stop:
        assert not stop()
        signal.raise_signal(signal.SIGINT)
        assert stop()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_a_run_that_goes_on_takes_its_new_weight_decay(tmp_path, text_file, config_file):
    run(tmp_path, text_file, config_file(), small(steps=1))
    request = RunRequest((CorpusPart(text_file),), tmp_path, config=config_file())
    optimizers = prepare(request, small(steps=2, weight_decay=0.3)).trainer.optimizers
    matrices, plain = optimizers.all[0].param_groups
    assert (matrices["weight_decay"], plain["weight_decay"]) == (0.3, 0.0)
    assert read_request(tmp_path).recipe["weight_decay"] == 0.3


def test_a_resumed_run_keeps_its_batches(tmp_path, text_file, config_file):
    run(tmp_path, text_file, config_file(), small(steps=1))
    request = RunRequest((CorpusPart(text_file),), tmp_path, config=config_file())
    with pytest.raises(DataError, match="batch_blocks was 4"):
        prepare(request, small(batch_blocks=5))
    assert prepare(request, small(steps=3)).trainer.state.step == 1


def test_a_run_that_goes_on_with_other_choices_says_so(tmp_path, text_file, config_file):
    first = small(steps=1)
    run(tmp_path, text_file, config_file(), first)
    again = RunRequest((CorpusPart(text_file, 3),), tmp_path, config=config_file())
    list(prepare(again, small(steps=2, learning_rate=1e-3)).rows())
    prepare(again, small(steps=2, learning_rate=1e-3))  # the same once more adds nothing
    asked = read_request(tmp_path)
    (earlier,) = asked.earlier
    assert earlier["until_step"] == 1
    assert earlier["texts"] == [{"file": text_file.name, "share": 1.0}]
    assert earlier["recipe"] == asdict(first)
    told = card(tmp_path)
    assert f"\n- until step 1: {text_file.name}; " in told
    assert "characters; steps 1; learning rate 0.005" in told


def test_a_text_that_grew_is_noticed(tmp_path, text_file, config_file):
    text = tmp_path / "text.txt"
    text.write_bytes(text_file.read_bytes())
    run(tmp_path / "run", text, config_file(), small(steps=1))
    before = read_request(tmp_path / "run").characters
    with text.open("a", encoding="utf-8") as file:
        file.write("the dog ran home\n")
    request = RunRequest((CorpusPart(text),), tmp_path / "run", config=config_file())
    prepare(request, small(steps=1))
    (earlier,) = read_request(tmp_path / "run").earlier
    assert earlier["characters"] == before


def test_a_foreign_checkpoint_is_refused(tmp_path, text_file, config_file):
    request = RunRequest((CorpusPart(text_file),), tmp_path, config=config_file())
    torch.save({"model": {}}, tmp_path / "checkpoint.pt")
    with pytest.raises(DataError, match="cannot be read as a training checkpoint"):
        prepare(request, small())
    (tmp_path / "checkpoint.pt").write_bytes(b"something else")
    with pytest.raises(DataError, match="cannot be read as a training checkpoint"):
        prepare(request, small())


def test_a_broken_log_is_named(tmp_path):
    (tmp_path / "log.jsonl").write_text('{"step": 1}\n')
    with pytest.raises(DataError, match=r"log\.jsonl: elapsed_seconds: field required"):
        read_log(tmp_path / "log.jsonl")
