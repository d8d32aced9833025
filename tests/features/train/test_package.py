"""A tiny trained model all the way to a measured folder."""

import re
import shutil

import numpy as np
import pytest
import torch
from features.train.small_training import card, small

from fillmask_ui.errors import ModelError
from fillmask_ui.evaluation import EvaluationConfig, evaluate
from fillmask_ui.features.train.command import describe
from fillmask_ui.features.train.package_model import (
    PackageRequest,
    measure_cloze,
    measure_text,
    package,
    read_cloze,
)
from fillmask_ui.features.train.torch_weights import load_weights, write_weights
from fillmask_ui.features.train.training_run import RunRequest, prepare, read_request
from fillmask_ui.models import load_model
from fillmask_ui.models.torch_model import check_parity
from fillmask_ui.publishing.hub_folder import SHARED
from fillmask_ui.records import SkippedText


def test_the_folder_holds_what_is_needed_and_its_runtimes_agree(packaged):
    names = sorted(p.relative_to(packaged).as_posix() for p in packaged.rglob("*") if p.is_file())
    assert names == [
        "README.md",
        "config.json",
        "model.onnx",
        "model.safetensors",
        "onnx/model_int8.onnx",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    full, torch_model = load_model(packaged), load_model(packaged, runtime="torch")
    int8 = load_model(packaged, onnx_file="model_int8.onnx")
    assert (full.signature.runtime, int8.signature.precision) == ("onnx", "int8")
    ids = np.array([full.vocabulary.encode("the cat [MASK] the house.").ids])
    cols = np.arange(ids.shape[1])
    asked = (ids, np.ones_like(ids), np.zeros_like(cols), cols)
    logits = [model.logits_at(*asked) for model in (full, torch_model, int8)]
    np.testing.assert_allclose(logits[0], logits[1], atol=1e-3)
    assert 0 < np.abs(logits[2] - logits[0]).mean() < 0.2 * logits[0].std()
    # A trimmed vocabulary reads everything.
    assert full.vocabulary.size == 120
    tokens = full.vocabulary.encode("nobody remembers the garden [MASK]. tacos").tokens
    assert "[UNK]" not in tokens


def test_the_card_says_what_was_measured(packaged, trained, cloze_file, text_file):
    readme = (packaged / "README.md").read_text(encoding="utf-8")
    assert readme.startswith("---\nlicense: mit\n---\n\n# A tiny model\n")
    # The first scheme of `quantize` whose loss is within 1%, or the best.
    ((exact, taken),) = re.findall(r"full precision (\S+) nats; taken: (\S+)\.", readme)
    trials = re.findall(r"^\| (int8\S*) \| (\S+) \|", readme, re.MULTILINE)
    losses = {name: float(nats) for name, nats in trials}
    assert list(losses) == ["int8-tensor", "int8-channel", "int8"]
    near = [name for name, nats in losses.items() if nats <= 1.01 * float(exact)]
    assert taken == (near[0] if near else min(losses, key=losses.get))
    assert "|  | start | full precision | int8 |" in readme
    shown = re.findall(r"^\| top-1, (.+?) \|( \S+% \|){3}$", readme, re.MULTILINE)
    kinds = ["shown as [MASK]", "shown as a random token", "shown unchanged", "all"]
    assert [name for name, _ in shown] == kinds
    assert (
        "\nfillmask-ui train --text text.txt --config bert.json --vocabulary-size 150 --steps 30 "
        "--block-tokens 32 --batch-blocks 4 --learning-rate 0.005 -o run\n"
        "fillmask-ui package run -o model --vocabulary-size 120 --text text.txt "
        "--calibration text.txt:0.05 --evaluate text.txt:0.1 --cloze cloze.jsonl "
        "--notes notes.md --baseline trained-run\n" in readme
    )
    assert str(trained.parent) not in readme
    before = read_request(trained).parameters
    left = sum(p.numel() for p in load_weights(packaged).model.parameters())
    assert f"{before:,} in training, {left:,} with the trimmed vocabulary" in readme
    # The figures are those of the measuring functions on the folder as it stands.
    model = load_model(packaged)
    right = measure_cloze(model, read_cloze(cloze_file)).top5
    assert re.search(rf"\| cloze top-5 \| \S+ \| {right:.1%} \|", readme)
    lines = text_file.read_text().splitlines()[9::10]
    scores = measure_text(model, lines).model
    assert re.search(
        rf"\| nats per character \| \S+ \| {scores.nll_per_character_nats:.4f} \|", readme
    )


def test_a_head_of_random_numbers_is_told_in_training_and_not_packaged(
    trained, tmp_path, text_file
):
    from transformers import BertModel

    loaded = load_weights(trained)
    assert loaded.missing == ()  # tied weights are stored once
    headless = tmp_path / "headless"
    BertModel(loaded.model.config, add_pooling_layer=False).save_pretrained(headless)
    loaded.tokenizer.save_pretrained(headless)
    with pytest.raises(ModelError, match=r"headless lacks \d+ weights of a BertForMaskedLM"):
        package(PackageRequest(headless, tmp_path / "out"))
    assert not (tmp_path / "out").exists()
    request = RunRequest([str(text_file)], tmp_path / "run", init=str(headless))
    prepared = prepare(request, small(steps=1))
    readme = "tensors that the start lacks, such as cls.predictions."
    assert readme in describe(prepared)
    list(prepared.rows())
    assert readme in card(tmp_path / "run")


def test_a_graph_that_disagrees_with_pytorch_is_refused(packaged, tmp_path):
    folder = shutil.copytree(packaged, tmp_path / "model")

    def parity():
        return check_parity(
            load_model(folder, onnx_file=SHARED), load_model(folder, runtime="torch")
        )

    assert parity() < 1e-3
    model = load_weights(folder).model
    embeddings = model.bert.embeddings
    with torch.no_grad():
        embeddings.position_embeddings.weight += 0.1 * torch.randn(66, 32)
    write_weights(model, folder / "other")
    with torch.no_grad():
        embeddings.LayerNorm.weight[0] = 1e6
    with pytest.raises(ModelError, match="float16"):
        write_weights(model, tmp_path)
    (folder / "other" / "model.safetensors").replace(folder / "wrong.safetensors")
    graph = (folder / SHARED).read_bytes()
    assert graph.count(b"model.safetensors") > 5
    (folder / SHARED).write_bytes(graph.replace(b"model.safetensors", b"wrong.safetensors"))
    with pytest.raises(ModelError, match="differs from PyTorch"):
        parity()


def test_held_out_loss_is_torchs_cross_entropy(packaged, text_file):
    """Reference: torch.nn.functional.cross_entropy on the same hidden tokens."""
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
    figures = measure_text(model, lines).model
    assert figures.tokens == count
    assert figures.mean_nll_nats == pytest.approx(total / count, rel=1e-5)
