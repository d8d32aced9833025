"""A text has one number, alone or in any batch; references run each text by itself.

References: the same models by transformers, and ONNX Runtime on the file as it is. What they give
for the padded batch shows that the cases are telling.
"""

from pathlib import Path

import all_families
import numpy as np
import onnx
import onnxruntime as ort
import pytest
from all_families import TEXTS, make_family
from models.conftest import transformers_output
from onnx import helper, numpy_helper
from tiny_models import batch_of, export_onnx, quiet, reference_model, reference_tokenizer

from fillmask_ui import evaluate, summarize
from fillmask_ui.errors import ModelError, ModelOutputError
from fillmask_ui.evaluation import EvaluatedText
from fillmask_ui.models import load_model
from fillmask_ui.models.onnx_model import OnnxMaskedLM
from fillmask_ui.models.runtime_model import ALONE, ANY_LENGTH, ONE_LENGTH, SHARING

MIXERS = sorted(all_families.ONE_LENGTH)


def differ(logits: np.ndarray, reference: np.ndarray) -> float:
    """Of the largest logit, as the promise counts."""
    return float(np.abs(logits - reference).max() / np.abs(reference).max())


def one_by_one(folder: Path, batch) -> np.ndarray:
    """Logits [M, V] of transformers, a call for each text."""
    rows_of_logits = []
    for row, length in enumerate(batch.attention_mask.sum(axis=1)):
        ids = batch.input_ids[[row], :length]
        alone = type(batch)(ids, np.ones_like(ids), batch.rows, batch.cols)
        logits = transformers_output(folder, alone).logits[0].detach().numpy()
        rows_of_logits.append(logits[batch.cols[batch.rows == row]])
    return np.concatenate(rows_of_logits)


@pytest.fixture(scope="module")
def family(once):
    """`family(name)`: the folder of a tiny model of any family."""
    return lambda name: once.folder(f"all/{name}", lambda folder: make_family(name, folder))


@pytest.mark.parametrize("name", ["bert", *MIXERS])
def test_in_a_padded_batch_as_by_transformers_alone(name, family):
    folder = family(name)
    model = load_model(folder, runtime="torch")
    batch = batch_of(model.vocabulary, TEXTS)
    expected, padded = one_by_one(folder, batch), transformers_output(folder, batch).logits.numpy()
    mixes = name != "bert"
    assert (differ(padded[batch.rows, batch.cols], expected) > 0.1) == mixes
    assert differ(model.logits_at(*batch), expected) < 1e-5
    assert (SHARING[ONE_LENGTH] in model.signature.notes) == mixes and not model.runs_alone
    states = model.states_at(*batch)
    alone = [model.states_at(*batch_of(model.vocabulary, [text])) for text in TEXTS]
    assert differ(states, np.concatenate(alone)) < 1e-5


def test_an_evaluation_of_a_mixer_is_that_of_each_text(family):
    """Reference: transformers' logits, text by text, through `torch.nn.functional`."""
    import torch

    folder = family("fnet")
    reference, texts = reference_model(folder), [text.replace("[MASK]", "river") for text in TEXTS]
    measured = list(evaluate(load_model(folder, runtime="torch"), texts))
    losses = []
    for row in (row for row in measured if isinstance(row, EvaluatedText)):
        ids = torch.tensor(row.ids)
        ids[row.cols] = torch.tensor(row.shown_ids)
        with torch.no_grad():
            logits = reference(input_ids=ids[None]).logits[0, row.cols]
        true = torch.tensor(row.ids)[row.cols]
        losses += torch.nn.functional.cross_entropy(logits, true, reduction="none").tolist()
    assert len(losses) > len(texts)
    assert summarize(measured).model.mean_nll_nats == pytest.approx(np.mean(losses), rel=1e-5)


def file_logits(path: Path, batch, *, alone: bool) -> np.ndarray:
    """The file's logits [M, V] by ONNX Runtime, of the padded batch or a call for each text."""
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    inputs = {entry.name: entry.type for entry in session.get_inputs()}
    kinds = {name: np.float32 if "float" in kind else np.int64 for name, kind in inputs.items()}
    parts = [(row, length) for row, length in enumerate(batch.attention_mask.sum(axis=1))]
    rows = [(slice(row, row + 1), length) for row, length in parts]
    rows_of_logits = []
    for row, length in rows if alone else [(slice(None), None)]:
        ids, mask = batch.input_ids[row, :length], batch.attention_mask[row, :length]
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": ids * 0}
        feeds = {name: feeds[name].astype(kind) for name, kind in kinds.items()}
        logits = session.run(["logits"], feeds)[0]
        mine = np.isin(batch.rows, np.arange(len(batch.input_ids))[row])
        rows_of_logits.append(logits[batch.rows[mine] - (row.start or 0), batch.cols[mine]])
    return np.concatenate(rows_of_logits)


def exported_by_hand(folder: Path, target: Path, forward, mask_type: str = "int64") -> None:
    """`forward(model, ids, mask)` -> logits as a graph with these two inputs."""
    import torch

    class Called(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = reference_model(folder, attn_implementation="eager")

        def forward(self, ids, mask):
            return forward(self.model, ids, mask)

    names, free = ("input_ids", "attention_mask"), {0: "batch", 1: "length"}
    mask = torch.ones((2, 9), dtype=getattr(torch, mask_type))
    example = torch.full((2, 9), 5), mask
    with quiet():
        torch.onnx.export(
            Called(),
            example,
            str(target),
            input_names=list(names),
            output_names=["logits"],
            dynamic_axes=dict.fromkeys((*names, "logits"), free),
            opset_version=18,
            dynamo=False,
        )


def float_mask(model, ids, mask):
    """Added to the scores of attention: 0 to see a token and -10,000 not to."""
    return model(input_ids=ids, attention_mask=mask[:, None, None, :]).logits


def mask_of_the_embeddings_alone(model, ids, mask):
    """As where an exporter has folded away the mask of the attention, which was all ones."""
    states = model.esm.embeddings(input_ids=ids, attention_mask=mask)
    return model(inputs_embeds=states).logits


def added_mask(model, ids, mask):
    """As exporters write it for quantizers, which see in calibration that it is always 0."""
    return model(input_ids=ids, attention_mask=(1 - mask.float())[:, None, None, :] * -1e4).logits


def static_int8(folder: Path, target: Path) -> None:
    """QDQ, calibrated on texts without padding: its scales know no -10,000 of a mask."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

    # With large weights softmax shows little of what is near the lowest score.
    make_family("bert", folder, size=0.1)
    tokenizer, source = reference_tokenizer(folder), target.with_suffix(".plain")
    exported_by_hand(folder, source, added_mask)

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self.left = [self._feeds(text) for text in TEXTS]

        def _feeds(self, text: str) -> dict[str, np.ndarray]:
            inputs = tokenizer(text, return_tensors="np")
            return {name: inputs[name] for name in ("input_ids", "attention_mask")}

        def get_next(self):
            return self.left.pop() if self.left else None

    with quiet():
        quantize_static(source, target, Reader(), quant_format=QuantFormat.QDQ)


def mean_of_the_batch(folder: Path, target: Path) -> None:
    """Logits less their mean over the texts of a call."""
    model = onnx.load(folder / "onnx" / "model.onnx")
    output = next(node for node in model.graph.node if "logits" in node.output)
    output.output[list(output.output).index("logits")] = "plain"
    half = numpy_helper.from_array(np.float32([0.5]), "half")
    first = numpy_helper.from_array(np.array([0]), "axis_of_texts")
    model.graph.initializer.extend([half, first])
    model.graph.node.extend([
        helper.make_node("ReduceMean", ["plain", "axis_of_texts"], ["mean"]),
        helper.make_node("Mul", ["mean", "half"], ["part"]),
        helper.make_node("Sub", ["plain", "part"], ["logits"]),
    ])  # fmt: skip
    onnx.save(model, target)


GRAPHS = {
    "convbert": (lambda folder, target: export_onnx(folder, target), "convbert", ONE_LENGTH),
    "esm": (
        lambda folder, target: exported_by_hand(folder, target, mask_of_the_embeddings_alone),
        "esm",
        ONE_LENGTH,
    ),
    "float mask": (
        lambda folder, target: exported_by_hand(folder, target, float_mask, "float32"),
        "bert",
        ONE_LENGTH,
    ),
    "static int8": (static_int8, "bert", ONE_LENGTH),
    "mean of the batch": (mean_of_the_batch, "bert", ALONE),
    "plain": (lambda folder, target: export_onnx(folder, target), "bert", ANY_LENGTH),
}


@pytest.mark.parametrize("case", GRAPHS)
def test_graphs_give_in_a_padded_batch_what_they_give_alone(case, family, tmp_path, monkeypatch):
    monkeypatch.setenv("FILLMASK_UI_CACHE", str(tmp_path / "cache"))
    write, name, sharing = GRAPHS[case]
    folder = tmp_path / "model"
    make_family(name, folder)
    export_onnx(folder)
    write(folder, folder / "model.onnx")
    model = load_model(folder)
    batch = batch_of(model.vocabulary, TEXTS)
    expected = file_logits(folder / "model.onnx", batch, alone=True)
    padded = file_logits(folder / "model.onnx", batch, alone=False)
    assert (differ(padded, expected) > 1e-3) == (sharing != ANY_LENGTH)
    assert differ(model.logits_at(*batch), expected) < 1e-4
    assert model.runs_alone == (sharing == ALONE)
    assert model.shares_padding == (sharing == ANY_LENGTH)
    note = SHARING[sharing]
    assert model.signature.notes[: bool(note)] == ((note,) if note else ())
    # The verdict is kept with the cut graph, and not looked for again.
    cached = list((tmp_path / "cache" / "graphs").glob("*"))
    monkeypatch.setattr(OnnxMaskedLM, "_find_sharing", lambda *_: pytest.fail("again"))
    if cached:
        again = load_model(folder)
        assert again.signature == model.signature
        np.testing.assert_array_equal(again.logits_at(*batch), model.logits_at(*batch))
    assert bool(cached) == (case != "mean of the batch")


def test_a_fixed_length_is_part_of_the_model(family, tmp_path):
    """Padded it always is, so that texts of all lengths share a call, and none changes another."""
    folder = family("convbert")
    export_onnx(folder, tmp_path / "model.onnx", length=48)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    model = load_model(tmp_path)
    together = model.logits_at(*batch_of(model.vocabulary, TEXTS))
    alone = [model.logits_at(*batch_of(model.vocabulary, [text])) for text in TEXTS]
    assert differ(together, np.concatenate(alone)) < 1e-5
    assert model.shares_padding and model.signature.notes == ()


def test_numbers_that_rest_on_chance_are_refused(family, tmp_path):
    import torch

    model = reference_model(family("bert"))
    tokenizer = reference_tokenizer(family("bert"))

    def noisy(_module, _args, states):
        return states + 0.1 * torch.randn_like(states)

    model.bert.embeddings.register_forward_hook(noisy)
    with pytest.raises(ModelOutputError, match="gives other logits each time"):
        load_model(model, tokenizer=tokenizer)
    make_family("reformer", tmp_path / "r", attn_layers=["local", "lsh"], num_buckets=4)
    with pytest.raises(ModelError, match="LSH attention"):
        load_model(tmp_path / "r", runtime="torch")
