"""ONNX files as they come: each variant of one model gives the logits of the plain export.

The reference is the same weights on PyTorch, which `test_families` holds against transformers.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tiny_models import batch_of

from fillmask_ui import fill
from fillmask_ui.errors import ModelError, TextError
from fillmask_ui.models import load_model
from fillmask_ui.models.weights import weights_sha256


def test_int32_inputs(exported, agrees):
    import torch

    folder = exported("bert", dtype=torch.int32)
    types = {i.type.tensor_type.elem_type for i in onnx.load(folder / "model.onnx").graph.input}
    assert types == {TensorProto.INT32}
    agrees(load_model(folder))


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert"])
@pytest.mark.parametrize(
    "inputs",
    [
        ("input_ids", "attention_mask"),
        ("input_ids", "attention_mask", "position_ids"),
        ("attention_mask", "input_ids"),
    ],
    ids=["no token_type_ids", "position_ids", "other order"],
)
def test_inputs(exported, agrees, inputs, family):
    folder = exported(family, inputs=inputs)
    names = [i.name for i in onnx.load(folder / "model.onnx").graph.input]
    assert names == list(inputs)
    agrees(load_model(folder), family)


def test_no_attention_mask(exported, agrees):
    """Texts of different lengths are run apart, as padding would be read as text."""
    agrees(load_model(exported("bert", inputs=("input_ids",))))


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_fixed_batch(exported, agrees, batch):
    model = load_model(exported("bert", batch=batch))
    agrees(model)
    many = batch_of(model.vocabulary, [f"word {n} [MASK]" for n in range(7)])
    single = [model.logits_at(*batch_of(model.vocabulary, [f"word {n} [MASK]"])) for n in range(7)]
    np.testing.assert_allclose(model.logits_at(*many), np.concatenate(single), atol=1e-4)


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_fixed_length(exported, agrees, family):
    model = load_model(exported(family, length=48))
    assert model.max_tokens == 48
    agrees(model, family)
    with pytest.raises(TextError, match="48"):
        fill(model, "a " * 60 + model.vocabulary.mask_token)


def test_float16_outputs(variant, agrees):
    def change(source: Path, target: Path) -> None:
        model = onnx.load(source)
        output = model.graph.output[0]
        inner = f"{output.name}_float32"
        for node in model.graph.node:
            node.output[:] = [inner if name == output.name else name for name in node.output]
        model.graph.node.append(
            helper.make_node("Cast", [inner], [output.name], to=TensorProto.FLOAT16)
        )
        output.type.tensor_type.elem_type = TensorProto.FLOAT16
        onnx.save(model, target)

    agrees(load_model(variant(change)), atol=2e-2)


def test_float16_weights(variant, agrees):
    """Stored in half precision and cast on load."""

    def change(source: Path, target: Path) -> None:
        model = onnx.load(source)
        casts = []
        for tensor in model.graph.initializer:
            if tensor.data_type == TensorProto.FLOAT and len(tensor.dims) > 1:
                half = numpy_helper.to_array(tensor).astype(np.float16)
                name = tensor.name
                tensor.CopyFrom(numpy_helper.from_array(half, f"{name}_half"))
                casts.append(
                    helper.make_node("Cast", [f"{name}_half"], [name], to=TensorProto.FLOAT)
                )
        nodes = [*casts, *model.graph.node]
        del model.graph.node[:]
        model.graph.node.extend(nodes)
        onnx.save(model, target)

    model = load_model(variant(change))
    assert model.signature.precision == "float16"
    agrees(model, atol=5e-2)


def test_more_outputs(exported, agrees):
    """Hidden states come first and have the same rank."""
    folder = exported("bert", outputs=("hidden", "logits"))
    assert [o.name for o in onnx.load(folder / "model.onnx").graph.output] == ["hidden", "logits"]
    agrees(load_model(folder))


def test_external_data(variant, agrees):
    def change(source: Path, target: Path) -> None:
        onnx.save(
            onnx.load(source),
            target,
            save_as_external_data=True,
            location="model.onnx_data",
            size_threshold=0,
        )

    folder = variant(change)
    plain = load_model(folder)
    agrees(plain)
    assert plain.signature.size_bytes == sum(
        (folder / name).stat().st_size for name in ("model.onnx", "model.onnx_data")
    )


def test_size_is_that_of_what_is_read_from_a_shared_file(variant):
    def change(source: Path, target: Path) -> None:
        model = onnx.load(source)
        onnx.save(model, target, save_as_external_data=True, location="both", size_threshold=0)
        with (target.parent / "both").open("ab") as file:
            file.write(bytes(1 << 20))  # what only another graph reads

    folder = variant(change)
    tensors = onnx.load(folder / "model.onnx", load_external_data=False).graph.initializer
    lengths = sum(int(e.value) for own in tensors for e in own.external_data if e.key == "length")
    wanted = (folder / "model.onnx").stat().st_size + lengths
    for _ in ("read", "from the cache"):
        signature = load_model(folder).signature
        assert signature.size_bytes == wanted
    assert signature.sha256 == weights_sha256([folder / "model.onnx", folder / "both"])


def external(location: str) -> Callable[[Path, Path], None]:
    """Put the weights where `location` says, relative to the folder of the graph."""

    def change(source: Path, target: Path) -> None:
        inside = target.parent / "onnx" / "model.onnx"
        inside.parent.mkdir()
        onnx.save(
            onnx.load(source),
            inside,
            save_as_external_data=True,
            location="weights",
            size_threshold=0,
        )
        model = onnx.load(inside, load_external_data=False)
        for tensor in model.graph.initializer:
            for entry in tensor.external_data:
                if entry.key == "location":
                    entry.value = location
        moved = inside.parent / location
        if moved.parent.is_dir() and not moved.exists():
            (inside.parent / "weights").rename(moved)
        onnx.save(model, inside)

    return change


def test_external_data_one_folder_up(variant, agrees):
    """As the embedded model has it; ONNX Runtime alone refuses such a file."""
    folder = variant(external("../shared.data"))
    model = load_model(folder)
    agrees(model)
    agrees(load_model(folder / "onnx" / "model.onnx"))


def test_external_data_behind_links(variant, agrees, tmp_path):
    """The hub's cache: a snapshot is a folder of links into `blobs`."""
    folder = variant(external("../shared.data"))
    blobs = tmp_path / "models--org--name" / "blobs"
    snapshot = tmp_path / "models--org--name" / "snapshots" / ("a" * 40)
    blobs.mkdir(parents=True)
    for number, path in enumerate(sorted(p for p in folder.rglob("*") if p.is_file())):
        link = snapshot / path.relative_to(folder)
        link.parent.mkdir(parents=True, exist_ok=True)
        path.rename(blobs / str(number))
        link.symlink_to(blobs / str(number))
    agrees(load_model(snapshot))


@pytest.mark.parametrize(
    "location", ["../../shared.data", "/etc/hostname", "../../../etc/hostname"]
)
def test_external_data_outside_the_folder(variant, location):
    with pytest.raises(ModelError, match="outside the folder"):
        load_model(variant(external(location)))


def test_external_data_through_a_link_to_the_outside(variant, tmp_path):
    folder = variant(external("../shared.data"))
    (folder / "shared.data").rename(tmp_path / "elsewhere")
    (folder / "shared.data").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ModelError, match="outside the folder"):
        load_model(folder)


def test_external_data_missing(variant):
    folder = variant(external("../shared.data"))
    (folder / "shared.data").unlink()
    with pytest.raises(ModelError, match=r"shared\.data cannot be read as a model: No such file"):
        load_model(folder)


@pytest.mark.parametrize("cached", [False, True])
def test_external_data_cut_short(variant, cached, tmp_path, monkeypatch):
    monkeypatch.setenv("FILLMASK_UI_CACHE", str(tmp_path))
    folder = variant(external("../shared.data"))
    shared = folder / "shared.data"
    if cached:
        load_model(folder)
    shared.write_bytes(shared.read_bytes()[:-1])
    with pytest.raises(ModelError, match=r"cannot be read as a model: .*out of bounds"):
        load_model(folder)


def test_a_big_batch_runs_in_pieces(tiny_models, tmp_path, monkeypatch):
    """All logits [B, T, V] of 40 texts would be over the limit set here."""
    monkeypatch.setenv("FILLMASK_UI_CACHE", str(tmp_path))
    monkeypatch.setattr("fillmask_ui.models.onnx_graph.gather_asked", lambda *_, **__: None)
    model = load_model(tiny_models.folder("bert"))
    texts = [f"{'the ' * (n % 9)}[MASK] cat {n}" for n in range(40)]
    batch = batch_of(model.vocabulary, texts)
    whole = model.logits_at(*batch)
    shapes = []
    session = model._session

    class Watched:
        def run(self, names, feeds, options=None):
            shapes.append(feeds["input_ids"].shape)
            return session.run(names, feeds, options)

    monkeypatch.setattr(model, "_session", Watched())
    monkeypatch.setattr("fillmask_ui.models.runtime_model._RUN_BYTES", 60_000)
    np.testing.assert_allclose(model.logits_at(*batch), whole, atol=1e-4)
    assert len(shapes) > 5
    assert all(b * t * model.signature.vocabulary_size * 4 <= 60_000 for b, t in shapes)
    assert sum(b for b, _ in shapes) == 40


def test_texts_without_a_question_are_not_run(loaded, monkeypatch):
    model = loaded("bert", "onnx")
    batch = batch_of(model.vocabulary, ["a [MASK]", "the [MASK] cat sat", "no question here"])
    whole = model.logits_at(*batch)
    only = model.logits_at(batch.input_ids, batch.attention_mask, batch.rows[1:], batch.cols[1:])
    np.testing.assert_allclose(only, whole[1:], atol=1e-4)
    shapes = []
    feed = model.arrays
    monkeypatch.setattr(
        model, "arrays", lambda ids, mask: shapes.append(ids.shape) or feed(ids, mask), raising=True
    )
    model.logits_at(batch.input_ids, batch.attention_mask, batch.rows[:1], batch.cols[:1])
    assert shapes == [(1, 4)]


def test_no_questions(loaded):
    for runtime in ("onnx", "torch"):
        model = loaded("bert", runtime)
        batch = batch_of(model.vocabulary, ["nothing hidden"])
        logits = model.logits_at(*batch)
        assert logits.shape == (0, model.signature.vocabulary_size)
