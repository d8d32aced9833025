"""The loop on tiny models: it learns, it resumes, its parts agree with plain references."""

import json
import shutil
import signal
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from fillmask_ui.cli import train as train_command
from fillmask_ui.cli.main import app
from fillmask_ui.errors import DataError, FillmaskError, OptionError
from fillmask_ui.plots import loss_figure
from fillmask_ui.training.blend import SHARES, copy_weights
from fillmask_ui.training.card import earlier_section, read_request
from fillmask_ui.training.corpus import TextSource, tokenize
from fillmask_ui.training.masks import hide
from fillmask_ui.training.network import (
    HiddenPositionModel,
    SegmentForm,
    find_segment_form,
    segment_inputs,
)
from fillmask_ui.training.optimizer import Optimizers
from fillmask_ui.training.recipe import Recipe
from fillmask_ui.training.run import RunRequest, _attention, prepare, read_log
from fillmask_ui.training.scratch import new_model, train_tokenizer
from fillmask_ui.training.weights import load_weights


def small(**changes):
    values = {
        "steps": 12,
        "block_tokens": 32,
        "batch_blocks": 4,
        "learning_rate": 5e-3,
        "precision": "fp32",
        "validation_segments": 20,
    }
    return Recipe(**(values | changes))


def run(folder, text_file, config, recipe):
    request = RunRequest((TextSource(text_file),), folder, config=config, vocabulary_size=200)
    prepared = prepare(request, recipe)
    return prepared, list(prepared.rows(log_every=1))


@pytest.fixture(scope="module")
def tokenizer(sentences):
    return train_tokenizer(sentences, 200)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_the_loss_falls(tmp_path, text_file, config_file, optimizer):
    recipe = small(steps=40, optimizer=optimizer)
    prepared, rows = run(tmp_path, text_file, config_file(), recipe)
    losses = [row.train_nll_nats for row in rows]
    assert np.mean(losses[-5:]) < np.mean(losses[:3]) - 0.5
    assert rows[-1].validation_nll_nats < losses[0] - 0.5
    assert rows[-1].rate < 0.05 * max(row.rate for row in rows)
    assert read_log(prepared.log) == rows


@pytest.mark.parametrize(("optimizer", "dropout"), [("adamw", 0.0), ("muon", 0.0), ("adamw", 0.1)])
def test_a_resumed_run_equals_the_uninterrupted_one(
    tmp_path, text_file, config_file, optimizer, dropout
):
    recipe = small(optimizer=optimizer, checkpoint_minutes=1e-9)
    config = config_file(hidden_dropout_prob=dropout)
    _, whole = run(tmp_path / "whole", text_file, config, recipe)
    request = RunRequest(
        (TextSource(text_file),), tmp_path / "parts", config=config, vocabulary_size=200
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


def test_time_decides_the_decay(tmp_path, text_file, config_file):
    """With a clock of ten seconds a step, one minute is six steps."""
    request = RunRequest(
        (TextSource(text_file),), tmp_path, config=config_file(), vocabulary_size=200
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
        (TextSource(text_file),), tmp_path / "b", init=str(tmp_path / "a"), vocabulary_size=size - 5
    )
    prepared = prepare(request, small(steps=1))
    assert prepared.trainer.model.config.vocab_size == size - 5
    assert len(prepared.trainer.tokenizer) == size - 5
    assert prepared.trainer.validate().nll_nats == pytest.approx(before, abs=0.3)


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
    new_model(config_file(), tokenizer, "eager").save_pretrained(start)
    text = tmp_path / "text.txt"
    text.write_text("\n".join(sentences))
    size = len(tokenizer) - 15
    request = RunRequest(
        (TextSource(text),), tmp_path / "run", init=str(start), vocabulary_size=size
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
    request = RunRequest((TextSource(text_file),), tmp_path / "a", config=config_file())
    with pytest.raises(OptionError, match="leave --vocabulary-size out"):
        prepare(replace(request, vocabulary_size=120), small(steps=2))
    size = len(first.trainer.tokenizer)
    assert prepare(replace(request, vocabulary_size=size), small(steps=2)).resumed
    with pytest.raises(OptionError, match="started without --init"):
        prepare(replace(request, config=None, init=str(tmp_path / "a")), small(steps=2))
    going_on = RunRequest((TextSource(text_file),), tmp_path / "b", init=str(tmp_path / "a"))
    list(prepare(going_on, small(steps=1)).rows())
    shutil.copytree(tmp_path / "a", tmp_path / "c")
    with pytest.raises(OptionError, match=r"was started --init .*a; ask for the same"):
        prepare(replace(going_on, init=str(tmp_path / "c")), small(steps=2))
    assert prepare(going_on, small(steps=2)).resumed


def test_weights_of_other_tokens_are_refused(tmp_path, text_file, config_file):
    prepared, _ = run(tmp_path, text_file, config_file(), small(steps=1))
    request = RunRequest((TextSource(text_file),), tmp_path, config=config_file())
    stored = torch.load(prepared.checkpoint, weights_only=True)
    torch.save(stored | {"vocabulary": "of another"}, prepared.checkpoint)
    with pytest.raises(DataError, match="belong to other tokens"):
        prepare(request, small(steps=2))
    del stored["vocabulary"]  # as earlier versions wrote it
    torch.save(stored, prepared.checkpoint)
    assert prepare(request, small(steps=2)).trainer.state.step == 1


def test_the_log_holds_no_step_of_an_abandoned_attempt(tmp_path, text_file, config_file):
    request = RunRequest((TextSource(text_file),), tmp_path, config=config_file())
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
    request = RunRequest((TextSource(text_file),), tmp_path, config=config_file())
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
    request = RunRequest((TextSource(text_file),), tmp_path, config=config_file())
    optimizers = prepare(request, small(steps=2, weight_decay=0.3)).trainer.optimizers
    matrices, plain = optimizers.all[0].param_groups
    assert (matrices["weight_decay"], plain["weight_decay"]) == (0.3, 0.0)
    assert read_request(tmp_path)["recipe"]["weight_decay"] == 0.3


FAMILIES = ["bert", "roberta", "distilbert", "modernbert", "deberta-v2"]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_an_attention_on_cuda(family, tokenizer, config_file, tmp_path):
    """Fused where transformers has it; DeBERTa has none."""
    model = new_model(config_file(family), tokenizer, _attention("cuda"))
    expected = "eager" if family == "deberta-v2" else "sdpa"
    assert model.config._attn_implementation == expected
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert load_weights(tmp_path, None).model.config._attn_implementation == expected


@pytest.mark.parametrize("family", FAMILIES)
def test_packed_rows_give_the_loss_of_segments_alone(family, tokenizer, config_file):
    """Reference: the plain forward pass of transformers on each segment by itself."""
    torch.manual_seed(0)
    model = new_model(config_file(family), tokenizer, "eager").eval()
    network = HiddenPositionModel(model)
    form = find_segment_form(network)
    # DeBERTa's positions are relative and its mask is a row's: it reads the row as one text.
    assert form.separate == (family != "deberta-v2")
    ids = torch.randint(5, len(tokenizer), (1, 30))
    segment = torch.tensor([[1] * 11 + [2] * 16 + [0] * 3])
    position = torch.tensor([[*range(11), *range(16), *range(3)]])
    rows, cols = torch.zeros(4, dtype=torch.long), torch.tensor([0, 7, 11, 26])
    with torch.no_grad():
        got = network.logits(ids, rows, cols, segment, position)
        if form.separate:
            alone = [
                model(input_ids=ids[:, :11]).logits[0],
                model(input_ids=ids[:, 11:27]).logits[0],
            ]
            expected = torch.cat(alone)[cols]
        else:
            seen = (segment > 0).long()
            expected = model(input_ids=ids, attention_mask=seen).logits[0, cols]
    torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-4)


def test_a_sliding_window_needs_its_own_mask(tokenizer, config_file):
    model = new_model(config_file("modernbert"), tokenizer, "eager")
    assert find_segment_form(HiddenPositionModel(model)) == SegmentForm(True, 0, window=4)


def test_the_end_is_the_best_average_with_the_start(tmp_path, text_file, config_file):
    run(tmp_path / "a", text_file, config_file(), small(steps=20))
    source = (TextSource(text_file),)
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


def test_plain_form_hides_padding_only():
    segment = torch.tensor([[1, 1, 2, 0]])
    inputs = segment_inputs(SegmentForm(separate=False), segment, torch.zeros_like(segment))
    assert inputs["attention_mask"].tolist() == [[1, 1, 1, 0]]


def test_masks_follow_berts_proportions():
    """80/10/10 of the share, each within five standard deviations of the binomial."""
    ids = torch.randint(10, 1000, (200, 500), generator=torch.Generator().manual_seed(1))
    special = torch.tensor([0, 1, 2])
    ids[:, 0] = 1
    hidden = hide(ids, special, 2, 1000, 0.2, torch.Generator().manual_seed(2))
    count = len(hidden.rows)
    assert abs(count / (200 * 499) - 0.2) < 5 * (0.2 * 0.8 / (200 * 499)) ** 0.5
    assert not (hidden.cols == 0).any()
    assert torch.equal(ids[hidden.rows, hidden.cols], hidden.targets)
    shown = hidden.input_ids[hidden.rows, hidden.cols]
    masked = float((shown == 2).float().mean())
    kept = float((shown == hidden.targets).float().mean())
    assert abs(masked - 0.8) < 5 * (0.8 * 0.2 / count) ** 0.5
    assert abs(kept - 0.1) < 5 * (0.1 * 0.9 / count) ** 0.5
    untouched = torch.ones_like(ids, dtype=torch.bool)
    untouched[hidden.rows, hidden.cols] = False
    assert torch.equal(hidden.input_ids[untouched], ids[untouched])


def test_whole_words_are_hidden_whole():
    """Words of one, two and three pieces by hand; a piece behind a special token is a word."""
    pieces = {1: [10], 2: [11, 50], 3: [12, 51, 52], 0: [1, 53]}
    continues = torch.zeros(100, dtype=torch.bool)
    continues[50:60] = True
    draw = np.random.default_rng(3)
    ids, words = [], []
    for _ in range(300):
        row = [(token, n) for n in range(200) for token in pieces[int(draw.integers(4))]]
        ids.append([token for token, _ in row[:200]])
        words.append([n for _, n in row[:200]])
    ids, words = torch.tensor(ids), torch.tensor(words)
    special = torch.tensor([0, 1, 2])
    generator = torch.Generator().manual_seed(4)
    hidden = hide(ids, special, 2, 100, 0.2, generator, continues)
    chosen = torch.zeros_like(ids, dtype=torch.bool)
    chosen[hidden.rows, hidden.cols] = True
    ordinary = ids != 1
    assert not chosen[~ordinary].any()
    together = (words[:, 1:] == words[:, :-1]) & ordinary[:, 1:] & ordinary[:, :-1]
    assert torch.equal(chosen[:, 1:][together], chosen[:, :-1][together])
    starts = ordinary.clone()
    starts[:, 1:] &= ~together
    share = float(chosen[starts].float().mean())
    assert abs(share - 0.2) < 5 * (0.2 * 0.8 / int(starts.sum())) ** 0.5
    # Each piece has its own 80/10/10, as in the code of BERT's authors.
    shown = hidden.input_ids[hidden.rows, hidden.cols]
    count = len(shown)
    assert abs(float((shown == 2).float().mean()) - 0.81) < 5 * (0.8 * 0.2 / count) ** 0.5


def test_a_run_hides_the_words_of_its_tokenizer(tmp_path, config_file):
    """Made-up words of nine letters, which a small vocabulary spells with several pieces."""
    draw = np.random.default_rng(0)
    words = ["".join(draw.choice(list("abcdefghij"), 9)) for _ in range(2000)]
    text = tmp_path / "text.txt"
    text.write_text("\n".join(" ".join(words[i : i + 5]) for i in range(0, 2000, 5)))

    def first_loss(folder, whole_word):
        request = RunRequest((TextSource(text),), folder, config=config_file(), vocabulary_size=100)
        trainer = prepare(request, small(steps=1, whole_word=whole_word)).trainer
        return trainer, next(trainer.run()).train_nll_nats

    trainer, loss = first_loss(tmp_path / "words", True)
    tokens = trainer.tokenizer.convert_ids_to_tokens(range(len(trainer.tokenizer)))
    assert trainer.continues.tolist() == [token.startswith("##") for token in tokens]
    assert trainer.continues.any()
    _, of_tokens = first_loss(tmp_path / "tokens", False)
    assert loss != of_tokens


def test_muon_takes_the_matrices_and_adamw_the_rest(tokenizer, config_file):
    model = new_model(config_file(), tokenizer, "eager")
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


def test_unusable_inputs_have_a_message(tmp_path, text_file, config_file):
    source = (TextSource(text_file),)
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


def test_a_resumed_run_keeps_its_batches(tmp_path, text_file, config_file):
    run(tmp_path, text_file, config_file(), small(steps=1))
    request = RunRequest((TextSource(text_file),), tmp_path, config=config_file())
    with pytest.raises(DataError, match="batch_blocks was 4"):
        prepare(request, small(batch_blocks=5))
    assert prepare(request, small(steps=3)).trainer.state.step == 1


def test_a_run_that_goes_on_with_other_choices_says_so(tmp_path, text_file, config_file):
    first = small(steps=1)
    run(tmp_path, text_file, config_file(), first)
    again = RunRequest((TextSource(text_file, 3),), tmp_path, config=config_file())
    list(prepare(again, small(steps=2, learning_rate=1e-3)).rows())
    prepare(again, small(steps=2, learning_rate=1e-3))  # the same once more adds nothing
    asked = read_request(tmp_path)
    (earlier,) = asked["earlier"]
    assert earlier["until_step"] == 1
    assert earlier["texts"] == [{"file": text_file.name, "share": 1.0}]
    assert earlier["recipe"] == asdict(first)
    told = "\n".join(earlier_section(asked))
    assert f"until step 1: {text_file.name}; " in told
    assert "characters; steps 1; learning rate 0.005" in told


def test_a_text_that_grew_is_noticed(tmp_path, text_file, config_file):
    text = tmp_path / "text.txt"
    text.write_bytes(text_file.read_bytes())
    run(tmp_path / "run", text, config_file(), small(steps=1))
    before = read_request(tmp_path / "run")["characters"]
    with text.open("a", encoding="utf-8") as file:
        file.write("the dog ran home\n")
    request = RunRequest((TextSource(text),), tmp_path / "run", config=config_file())
    prepare(request, small(steps=1))
    (earlier,) = read_request(tmp_path / "run")["earlier"]
    assert earlier["characters"] == before


def test_a_foreign_checkpoint_is_refused(tmp_path, text_file, config_file):
    request = RunRequest((TextSource(text_file),), tmp_path, config=config_file())
    torch.save({"model": {}}, tmp_path / "checkpoint.pt")
    with pytest.raises(DataError, match="no checkpoint of this run"):
        prepare(request, small())


def test_the_plot_holds_both_losses(tmp_path, text_file, config_file):
    _, rows = run(tmp_path, text_file, config_file(), small(steps=4, validation_minutes=1e-9))
    training, validation = loss_figure(rows).data
    assert list(training.x) == [row.tokens for row in rows]
    assert list(training.y) == [row.train_nll_nats for row in rows]
    assert list(validation.y) == [row.validation_nll_nats for row in rows]
    assert f"{rows[-1].train_nll_nats:.3f}" in loss_figure(rows).layout.meta["description"]


def test_a_broken_log_is_named(tmp_path):
    (tmp_path / "log.jsonl").write_text('{"step": 1}\n')
    with pytest.raises(DataError, match=r"log\.jsonl is no training log"):
        read_log(tmp_path / "log.jsonl")
