"""The published evaluator's command, word for word but for its name, against its own loop."""

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from tiny_models import SENTENCES, reference_model, reference_tokenizer
from torch.nn.functional import cross_entropy

CONFIGS = b"""---
configs:
- config_name: wikitext-2-raw-v1
  data_files:
  - split: test
    path: wikitext-2-raw-v1/*.parquet
---
"""
SAMPLES = 30


@pytest.fixture
def hub(loopback_hub, tiny_models):
    """A hub with a data set and a tiny model of its own."""
    folder = tiny_models.folder("bert")
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    loopback_hub.add("org/tiny-bert", files)
    content = io.BytesIO()
    pq.write_table(pa.table({"text": texts(), "n": list(range(len(texts())))}), content)
    loopback_hub.add(
        "Salesforce/wikitext",
        {"README.md": CONFIGS, "wikitext-2-raw-v1/test.parquet": content.getvalue()},
        kind="dataset",
    )
    return loopback_hub


def texts():
    """Like WikiText: paragraphs, headings and empty lines."""
    return [text for sentence in SENTENCES for text in ("", f" = {sentence[:9]} = ", sentence)]


def published_value(folder):
    """Shuffle, mask one text at a time with the collator, sum torch's cross_entropy."""
    import datasets
    from transformers import DataCollatorForLanguageModeling

    model, tokenizer = reference_model(folder), reference_tokenizer(folder)
    rows = datasets.Dataset.from_dict({"text": texts()}).shuffle(seed=42).select(range(SAMPLES))
    collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15, seed=42)
    total, count = 0.0, 0
    for row in rows:
        if not row["text"].strip():
            continue
        ids = tokenizer(row["text"], truncation=True)["input_ids"]
        batch = collator([torch.tensor(ids)])
        with torch.no_grad():
            logits = model(input_ids=batch["input_ids"]).logits[0]
        total += cross_entropy(logits, batch["labels"][0], reduction="sum").item()
        count += int((batch["labels"] != -100).sum())
    return total / count, count


def test_the_published_command(hub, tiny_models, tmp_path):
    folder = tiny_models.folder("bert")
    command = [
        *("eval", "-m", folder / "onnx" / "model.onnx", "--model-id", "org/tiny-bert"),
        *("--task", "fill-mask", "--device", "cpu", "--dataset", "Salesforce/wikitext"),
        *("--dataset-name", "wikitext-2-raw-v1", "--split", "test", "--samples", SAMPLES),
        *("--column", "input_column=text", "--shuffle", "-o", tmp_path / "result.json"),
        *("--mask-stream", "collator", "--baseline", "org/tiny-bert", "--fail-on", "at-risk"),
    ]
    command = ["-m", "fillmask_ui", *command]
    done = hub.run(tmp_path / "cache", *command, FILLMASK_UI_RUNS=str(tmp_path / "runs"))
    assert done.returncode == 3, done.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    value, count = published_value(folder)
    assert result["tokens"] == count
    assert result["cross_entropy"] == pytest.approx(value, abs=1e-5)
    # The ONNX file and the weights beside it are one model.
    assert result["verdict"] == "NEAR_CHANCE"  # with random weights
    assert abs(result["relative_change"]) < 1e-5
    assert result["skipped"]["empty or blank"] > 5
    for line in ("Dataset: Salesforce/wikitext", "Task: fill-mask", f"Samples: {SAMPLES}"):
        assert line in done.stderr
    assert f"{value:.4f}" in done.stdout


def test_the_published_command_without_an_npu_names_what_brings_one(hub, tiny_models, tmp_path):
    """Before anything is fetched; with an NPU it would run."""
    command = (
        f"-m fillmask_ui eval -m {tiny_models.folder('bert')}/onnx/model.onnx --model-id "
        "org/tiny-bert --device npu --task fill-mask --dataset Salesforce/wikitext --dataset-name "
        "wikitext-2-raw-v1 --split test --samples 1000 --column input_column=text"
    )
    done = hub.run(tmp_path / "cache", *command.split(), FILLMASK_UI_RUNS=str(tmp_path / "runs"))
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert "no NPU for onnxruntime" in line and "onnxruntime-qnn (Qualcomm)" in line
    assert not [*(tmp_path / "cache").rglob("*--*")]
