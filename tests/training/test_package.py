"""A tiny trained model all the way to a measured folder."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_training import card
from typer.testing import CliRunner

from fillmask_ui.cli.main import app
from fillmask_ui.cli.train import describe
from fillmask_ui.errors import DataError, ModelError, OptionError
from fillmask_ui.models import load_model
from fillmask_ui.models.torch_model import check_parity
from fillmask_ui.quantizing.hub_folder import FULL
from fillmask_ui.records import SkippedText
from fillmask_ui.training.card import Package, PackageRequest
from fillmask_ui.training.corpus import CorpusPart
from fillmask_ui.training.folder import write_weights
from fillmask_ui.training.measure import measure_cloze, measure_text, read_cloze
from fillmask_ui.training.package import package
from fillmask_ui.training.recipe import Recipe
from fillmask_ui.training.run import RunRequest, prepare, read_request
from fillmask_ui.training.trim import choose_tokens
from fillmask_ui.training.weights import load_weights


@pytest.fixture(scope="module")
def trained(tmp_path_factory, text_file, config_file):
    """A run of 30 steps, through the command line."""
    folder = tmp_path_factory.mktemp("run")
    arguments = ["train", "--text", str(text_file), "--config", str(config_file()), "-o"]
    arguments += [str(folder), "--steps", "30", "--vocabulary-size", "200", "--threads", "1"]
    arguments += ["--block-tokens", "32", "--batch-blocks", "4", "--learning-rate", "5e-3"]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "30" in result.output
    return folder


@pytest.fixture(scope="module")
def cloze_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("cloze") / "cloze.jsonl"
    items = [
        {"text": "the cat [MASK] the house.", "accepted": ["sees", "likes"], "kind": "verb"},
        {"text": "[MASK] dog sees a river.", "accepted": ["a"], "kind": "article"},
    ]
    path.write_text("\n".join(json.dumps(item) for item in items))
    return path


@pytest.fixture(scope="module")
def packaged(trained, tmp_path_factory, text_file, cloze_file):
    folder = tmp_path_factory.mktemp("packaged") / "model"
    notes = folder.parent / "notes.md"
    notes.write_text("---\nlicense: mit\n---\n\n# A tiny model\n")
    arguments = ["package", str(trained), "-o", str(folder), "--evaluate", f"{text_file}:0.1"]
    arguments += ["--cloze", str(cloze_file), "--calibration", f"{text_file}:0.05"]
    arguments += ["--notes", str(notes), "--compare", str(trained)]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return folder


def test_the_run_leaves_log_plot_and_model(trained):
    for name in ("log.jsonl", "loss.html", "run.json", "checkpoint.pt", "model.safetensors"):
        assert (trained / name).stat().st_size > 0
    assert "plotly" in (trained / "loss.html").read_text(encoding="utf-8")


def test_the_same_command_on_a_finished_run_changes_nothing(trained, text_file, config_file):
    before = (trained / "log.jsonl").read_text()
    arguments = ["train", "--text", str(text_file), "--config", str(config_file()), "-o"]
    arguments += [str(trained), "--steps", "30", "--vocabulary-size", "200"]
    arguments += ["--block-tokens", "32", "--batch-blocks", "4", "--learning-rate", "5e-3"]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert "resumed at step 30" in result.output
    assert (trained / "log.jsonl").read_text() == before


def test_the_folder_holds_what_is_needed_and_no_more(packaged):
    names = sorted(p.relative_to(packaged).as_posix() for p in packaged.rglob("*") if p.is_file())
    assert names == [
        "README.md",
        "config.json",
        "model.safetensors",
        "onnx/model.onnx",
        "onnx/model_int8.onnx",
        "tokenizer.json",
        "tokenizer_config.json",
    ]


def test_every_runtime_of_the_folder_answers_alike(packaged):
    full, torch_model = load_model(packaged), load_model(packaged, runtime="torch")
    int8 = load_model(packaged, onnx_file="model_int8.onnx")
    assert (full.signature.runtime, int8.signature.precision) == ("onnx", "int8")
    ids = np.array([full.vocabulary.encode("the cat [MASK] the house.").ids])
    cols = np.arange(ids.shape[1])
    rows = np.zeros_like(cols)
    logits = [m.logits_at(ids, np.ones_like(ids), rows, cols) for m in (full, torch_model, int8)]
    np.testing.assert_allclose(logits[0], logits[1], atol=1e-3)
    assert 0 < np.abs(logits[2] - logits[0]).mean() < 0.2 * logits[0].std()


def test_the_card_says_what_was_measured(packaged, trained, cloze_file, text_file):
    card = (packaged / "README.md").read_text(encoding="utf-8")
    assert card.startswith("---\nlicense: mit\n---\n\n# A tiny model\n")
    figures = json.loads((trained / "package.json").read_text())["figures"]
    assert [one["name"] for one in figures] == ["start", "full precision", "int8"]
    full = figures[1]
    assert f"{full['text']['nll_nats']:.3f}" in card
    assert f"{full['cloze']['top5']:.1%}" in card
    assert "fillmask-ui train --text text.txt --config bert.json" in card
    assert str(trained.parent) not in card
    # The figures are those of the measuring functions on the folder as it stands.
    model = load_model(packaged)
    assert measure_cloze(model, read_cloze(cloze_file)).top5 == full["cloze"]["top5"]
    lines = text_file.read_text().splitlines()[9::10]
    assert measure_text(model, lines).nll_nats == pytest.approx(full["text"]["nll_nats"])


def test_the_card_rounds_a_bound_up(tmp_path):
    made = Package(tmp_path, 0, parity=1.14e-5, search=None)
    assert made.parity_text == "1.2e-05"
    assert replace(made, parity=2e-7).parity_text == "2.0e-07"
    assert replace(made, parity=0.0).parity_text == "0.0e+00"


def test_the_card_shows_the_shares_of_an_average(trained, tmp_path):
    trials = [
        {"share": 0.6, "nll_nats": 3.1, "top1": 0.25},
        {"share": 1.0, "nll_nats": 3.2, "top1": 0.2},
    ]
    source = shutil.copytree(trained, tmp_path / "run")
    (source / "blend.json").write_text(json.dumps(trials))
    assert "## Average" not in card(source)
    recipe = read_request(source).recipe | {"blend": True}
    _, text = card(source, recipe=recipe).split("## Average with the start")
    assert "60% of the trained ones was best" in text
    assert "| --- |\n| 100% | 3.200 | 20.0% |\n| 60% | 3.100 | 25.0% |\n\n" in text


def test_held_out_loss_is_torchs_cross_entropy(packaged, text_file):
    """Reference: torch.nn.functional.cross_entropy on the same hidden tokens."""
    from fillmask_ui.evaluation import EvaluationConfig, evaluate

    model = load_model(packaged, runtime="torch")
    lines = text_file.read_text().splitlines()[:40]
    total, count = 0.0, 0
    config = EvaluationConfig(seed=42, max_tokens=66)
    for row in evaluate(model, lines, config):
        if isinstance(row, SkippedText):
            continue  # a short line of which the draw hid nothing
        ids = row.ids.copy()
        ids[row.cols] = row.shown_ids
        logits = model.logits_at(
            ids[None], np.ones_like(ids)[None], np.zeros_like(row.cols), row.cols
        )
        loss = torch.nn.functional.cross_entropy(
            torch.from_numpy(logits), torch.from_numpy(row.true_ids), reduction="sum"
        )
        total, count = total + float(loss), count + len(row.cols)
    figures = measure_text(model, lines)
    assert figures.tokens == count
    assert figures.nll_nats == pytest.approx(total / count, rel=1e-5)


def test_trimming_keeps_words_in_use_and_reads_the_rest(trained, tmp_path, text_file):
    source = shutil.copytree(trained, tmp_path / "run")
    request = PackageRequest(
        source, tmp_path / "small", texts=(CorpusPart(text_file),), vocabulary_size=120
    )
    package(request)
    before, after = load_model(trained, runtime="torch"), load_model(tmp_path / "small")
    assert after.vocabulary.size == 120
    card = (tmp_path / "small" / "README.md").read_text(encoding="utf-8")
    assert "package run -o model --vocabulary-size 120 --text text.txt" in card
    left = sum(p.numel() for p in load_weights(tmp_path / "small").model.parameters())
    trained_with = read_request(trained).parameters
    assert left < trained_with
    assert f"{trained_with:,} in training, {left:,} with the trimmed vocabulary" in card
    text = "nobody remembers the garden [MASK]. tacos"
    encoded = after.vocabulary.encode(text)
    assert "[UNK]" not in encoded.tokens
    # Words that kept their token score as before, up to the softmax over fewer tokens.
    ids_a, ids_b = (np.array([m.vocabulary.encode(text).ids]) for m in (before, after))
    if ids_a.shape == ids_b.shape:
        col = np.flatnonzero(ids_b[0] == after.vocabulary.mask_id)
        a, b = (
            m.logits_at(ids, np.ones_like(ids), np.zeros(1, np.int64), col)[0]
            for m, ids in ((before, ids_a), (after, ids_b))
        )
        kept = {after.vocabulary.token(i): i for i in range(120)}
        for i in range(before.vocabulary.size):
            j = kept.get(before.vocabulary.token(i))
            assert j is None or a[i] == pytest.approx(b[j], abs=1e-2)


@pytest.fixture
def headless(tmp_path, trained):
    """The body of the trained model, without the head for masks."""
    from transformers import BertModel

    folder = tmp_path / "headless"
    loaded = load_weights(trained)
    BertModel(loaded.model.config, add_pooling_layer=False).save_pretrained(folder)
    loaded.tokenizer.save_pretrained(folder)
    return folder


def test_a_head_of_random_numbers_is_not_packaged(headless, trained, tmp_path):
    assert load_weights(trained).missing == ()  # tied weights are stored once
    with pytest.raises(ModelError, match=r"headless lacks \d+ weights of a BertForMaskedLM"):
        package(PackageRequest(headless, tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_training_tells_that_a_head_begins_at_random(headless, tmp_path, text_file):
    request = RunRequest((CorpusPart(text_file),), tmp_path / "run", init=str(headless))
    recipe = Recipe(steps=1, block_tokens=32, batch_blocks=4, precision="fp32")
    prepared = prepare(request, recipe)
    told = "tensors that the start lacks, such as cls.predictions."
    assert told in describe(prepared)
    list(prepared.rows())
    assert told in card(tmp_path / "run")


def test_the_card_names_starts_so_that_they_can_be_found(trained, tmp_path):
    (tmp_path / "third").mkdir()
    for given, name in (
        ("google-bert/bert-base-uncased@abc", "google-bert/bert-base-uncased@abc"),
        (str(tmp_path / "third"), "third"),
        ("/nowhere/third", "third"),
        ("third-training", "third-training"),
        ("embedded", "embedded"),
    ):
        text = card(trained, compare=given, init=given, config=None)
        assert f" --init {name} " in text
        assert f" --compare {name}\n" in text


def test_the_card_tells_the_dropout(trained):
    assert read_request(trained).dropout == {}
    assert "gradient norm 1, no dropout |" in card(trained)
    dropout = {"hidden_dropout_prob": 0.1}
    assert "gradient norm 1, hidden dropout prob 0.1 |" in card(trained, dropout=dropout)


def test_dropout_that_a_run_does_not_tell_stands_in_its_config(trained, tmp_path):
    asked = json.loads((trained / "run.json").read_text())
    del asked["dropout"]
    (tmp_path / "run.json").write_text(json.dumps(asked))
    shutil.copy(trained / "config.json", tmp_path)
    assert read_request(tmp_path).dropout == {}
    config = json.loads((trained / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"hidden_dropout_prob": 0.1}))
    assert read_request(tmp_path).dropout == {"hidden_dropout_prob": 0.1}


def test_chosen_tokens_are_special_single_frequent_and_early():
    tokens = ["[PAD]", "[unused0]", "[MASK]", "a", "##b", "π", "日", "the", "of", "cat", "##ing"]
    counts = np.array([0, 0, 0, 5, 5, 0, 9, 50, 40, 30, 0])
    picked = [tokens[i] for i in choose_tokens(tokens, {"[PAD]", "[MASK]"}, counts, 7)]
    assert picked == ["[PAD]", "[MASK]", "a", "##b", "π", "the", "of"]
    with pytest.raises(OptionError, match="between 5 and 11"):
        choose_tokens(tokens, {"[PAD]", "[MASK]"}, counts, 4)


def test_weights_beyond_half_precision_are_refused(trained, tmp_path):
    model = load_weights(trained).model
    with torch.no_grad():
        model.bert.embeddings.LayerNorm.weight[0] = 1e6
    with pytest.raises(ModelError, match="float16"):
        write_weights(model, tmp_path)


def test_a_graph_that_disagrees_with_pytorch_is_refused(packaged, tmp_path):
    folder = shutil.copytree(packaged, tmp_path / "model")

    def parity():
        return check_parity(load_model(folder, onnx_file=FULL), load_model(folder, runtime="torch"))

    assert parity() < 1e-3
    model = load_weights(folder).model
    with torch.no_grad():
        model.bert.embeddings.position_embeddings.weight += 0.1 * torch.randn(66, 32)
    write_weights(model, folder / "other")
    (folder / "other" / "model.safetensors").replace(folder / "wrong.safetensors")
    graph = (folder / "onnx/model.onnx").read_bytes()
    assert graph.count(b"../model.safetensors") > 5
    wrong = graph.replace(b"../model.safetensors", b"../wrong.safetensors")
    (folder / "onnx/model.onnx").write_bytes(wrong)
    with pytest.raises(ModelError, match="differs from PyTorch"):
        parity()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "holds no cloze item"),
        ("{", "line 1"),
        ('{"text": "a"}', "line 1"),
        ("[1]", "line 1"),
        ('{"text": 5, "accepted": ["a"]}', "line 1 .* text: .* it was 5"),
        ('{"text": "[MASK]", "accepted": [null]}', r"line 1 .* accepted\[0\]: .* it was null"),
    ],
)
def test_broken_cloze_lists_are_named(tmp_path, line, message):
    path = tmp_path / "list.jsonl"
    path.write_text(line)
    with pytest.raises(DataError, match=message):
        read_cloze(path)


def test_unusable_requests_have_a_message(tmp_path, trained):
    with pytest.raises(OptionError, match="another folder"):
        PackageRequest(trained, trained)
    with pytest.raises(OptionError, match="--text"):
        PackageRequest(trained, tmp_path, vocabulary_size=100)
    with pytest.raises(OptionError, match=r"nothing\.md"):
        PackageRequest(trained, tmp_path, notes=tmp_path / "nothing.md")
    (tmp_path / "latin.md").write_bytes(b"caf\xe9")
    with pytest.raises(DataError, match=r"latin\.md is no UTF-8 text \(byte 3\): save it as UTF-8"):
        PackageRequest(trained, tmp_path, notes=tmp_path / "latin.md")
    with pytest.raises(OptionError, match="nowhere"):
        PackageRequest(tmp_path / "nowhere", tmp_path / "out")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match="holds no weights"):
        package(PackageRequest(tmp_path / "empty", tmp_path / "out"))
