"""What is refused, with what to do instead: references, options, models with wrong numbers.

And what only looks odd, which is not.
"""

import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from recorded.program import ran
from safetensors.numpy import load_file, save_file
from tiny_models import batch_of, export_onnx, reference_model, texts_for

from fillmask_ui.errors import ModelError, ModelOutputError, OptionError
from fillmask_ui.files import asset
from fillmask_ui.models import available_models, hub_models, load_model


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"device": "Cudda"},
            r"unknown device 'Cudda'; did you mean 'cuda'\? .*; devices here: cpu",
        ),
        ({"threads": 0}, "threads must be"),
        ({"threads": 2**31}, r"threads must be from 1 to \d+"),
        ({"dtype": "int7", "runtime": "torch"}, "unknown dtype .*; known: bfloat16, float16"),
        ({"device": "meta", "runtime": "torch"}, r"unknown device .*; known: cpu"),
        ({"dtype": "float16"}, "belongs to the runtime torch"),
        ({"provider_options": {"a": 1}, "runtime": "torch"}, "belong to the runtime onnx"),
        ({"graph_optimization": "most"}, r"unknown graph optimization .*; known: all, basic"),
        ({"onnx_file": "other"}, r"unknown ONNX file .*; known: onnx/model\.onnx"),
        ({"onnx_file": "model", "runtime": "torch"}, "was chosen with the runtime torch"),
    ],
)
def test_unknown_options(tiny_models, options, message):
    with pytest.raises(OptionError, match=message):
        load_model(tiny_models.folder("bert"), **options)


def test_files_of_a_folder_that_do_not_fit_the_options(copy, tiny_models):
    with pytest.raises(ModelError, match="no weights for the runtime onnx: use the runtime torch"):
        load_model(tiny_models.without_onnx("bert"), runtime="onnx")
    folder = copy()
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="no weights for the runtime torch: use the runtime onnx"):
        load_model(folder, runtime="torch")
    path = folder / "onnx" / "model.onnx"
    shutil.copy(path, folder / "onnx" / "small.onnx")
    path.rename(folder / "onnx" / "large.onnx")
    with pytest.raises(OptionError, match=r"onnx/large\.onnx, onnx/small\.onnx"):
        load_model(folder)
    assert load_model(folder, onnx_file="small").signature.runtime == "onnx"


def edit_json(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_nan_at_one_position_is_said(copy):
    """Only the vector of position 20 is broken: short texts work, longer ones say NaN."""
    folder = copy(onnx=False)
    path = folder / "model.safetensors"
    weights = load_file(path)
    weights["bert.embeddings.position_embeddings.weight"][20] = np.nan
    save_file(weights, path, metadata={"format": "pt"})
    export_onnx(folder)
    for runtime in ("onnx", "torch"):
        model = load_model(folder, runtime=runtime)
        assert np.isfinite(model.logits_at(*batch_of(model.vocabulary, ["a [MASK]"]))).all()
        with pytest.raises(ModelOutputError, match="returned NaN at 1 of 1 positions"):
            model.logits_at(*batch_of(model.vocabulary, ["a " * 25 + "[MASK]"]))


def test_a_tokenizer_of_another_size(copy, tiny_models, tmp_path):
    """A wider model, as DeBERTa-v3 is, is fine and says so; a narrower one is refused."""
    folder = copy()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    source, wide = tiny_models.folder("bert", onnx=False), tmp_path / "wide"
    model = reference_model(source)
    model.resize_token_embeddings(320)
    model.save_pretrained(wide)
    for path in source.glob("token*.json"):
        shutil.copy(path, wide)
    export_onnx(wide)
    for runtime in ("onnx", "torch"):
        with pytest.raises(ModelError, match="420 tokens, the model has logits for 300"):
            load_model(folder, tokenizer=tiny_models.folder("roberta"), runtime=runtime)
        loaded = load_model(wide, runtime=runtime)
        assert loaded.signature.vocabulary_size == 320 and loaded.vocabulary.size == 300
        assert "320 logits" in loaded.signature.notes[0]
        assert loaded.vocabulary.token(310) == loaded.vocabulary.word(310) == "[310]"
        assert loaded.logits_at(*batch_of(loaded.vocabulary, ["a [MASK]"])).shape == (1, 320)


def test_a_vocabulary_rounded_up_beside_a_config_that_is_not(tiny_models, tmp_path):
    """As `pad_to_multiple_of` of transformers writes it; the numbers are those of transformers."""
    import torch

    source, wide = tiny_models.folder("bert", onnx=False), tmp_path / "wide"
    model = reference_model(source)
    model.resize_token_embeddings(300, pad_to_multiple_of=64)
    model.save_pretrained(wide)
    for path in source.glob("token*.json"):
        shutil.copy(path, wide)
    export_onnx(wide)
    edit_json(wide / "config.json", vocab_size=300)
    for runtime in ("onnx", "torch"):
        loaded = load_model(wide, runtime=runtime)
        assert "the model has 320 logits, the tokenizer knows 300 tokens" in loaded.signature.notes
        batch = batch_of(loaded.vocabulary, texts_for("bert", "[MASK]"))
        with torch.no_grad():
            ids, mask = map(torch.tensor, (batch.input_ids, batch.attention_mask))
            logits = model(input_ids=ids, attention_mask=mask).logits.numpy()
        np.testing.assert_allclose(
            loaded.logits_at(*batch), logits[batch.rows, batch.cols], atol=1e-4
        )
    # From 150 the next multiples are 152, 160, 192 and 256.
    edit_json(wide / "config.json", vocab_size=150)
    for runtime, message in (("onnx", "no output of floats"), ("torch", "do not have the shapes")):
        with pytest.raises(ModelError, match=message):
            load_model(wide, runtime=runtime)


# What a clone without Git LFS has, as https://git-lfs.github.com/spec/v1 describes it.
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 438064459\n"


@pytest.mark.parametrize(
    "file", ["tokenizer.json", "config.json", "model.safetensors", "onnx/model.onnx", "weights"]
)
def test_a_pointer_of_git_lfs_is_called_so(copy, file):
    folder = copy()
    if file == "weights":
        graph = onnx.load(folder / "onnx" / "model.onnx")
        outside = {"save_as_external_data": True, "location": "weights", "size_threshold": 0}
        onnx.save(graph, folder / "onnx" / "model.onnx", **outside)
        file = "onnx/weights"
    (folder / file).write_text(POINTER)
    runtime = "torch" if "safetensors" in file else "onnx"
    with pytest.raises(ModelError) as raised:
        load_model(folder, runtime=runtime)
    message = str(raised.value)
    assert message.startswith(f"{folder / file} is a pointer of Git LFS, not the file itself")
    assert "git lfs pull" in message and "\n" not in message


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "chat_template.jinja"])
def test_links_that_lead_out_of_a_folder_are_not_followed(copy, tmp_path, file):
    folder, private = copy(), tmp_path / "private"
    path = folder / file
    if path.exists():
        path.rename(private)
    else:
        private.write_text("secret")
    path.symlink_to(private)
    message = (
        rf"{file} is a link that leads out of the folder of .*, and such links are not followed"
    )
    choices = [{"reference": folder}, {"reference": folder / "onnx" / "model.onnx"}]
    choices.append({"reference": folder, "runtime": "torch"})
    if file != "config.json":
        choices.append({"reference": tmp_path / "alone.onnx", "tokenizer": folder})
        shutil.copy(folder / "onnx" / "model.onnx", tmp_path / "alone.onnx")
    for choice in choices:
        with pytest.raises(ModelError, match=message):
            load_model(**choice)
    # Inside the folder a link may lead anywhere, and the folder may be one.
    path.unlink()
    private.rename(folder / "kept")
    path.symlink_to("kept")
    (tmp_path / "linked").symlink_to(folder)
    for reference in (folder, tmp_path / "linked"):
        assert load_model(reference).signature.vocabulary_size == 300


@pytest.mark.parametrize("moved", ["offset", "header", "header of a cached graph"])
def test_weights_that_lie_elsewhere_than_the_graph_says(tmp_path, monkeypatch, moved):
    """Else ONNX Runtime would read numbers across two tensors."""
    monkeypatch.setenv("FILLMASK_UI_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "m"
    shutil.copytree(asset("model"), folder, ignore=shutil.ignore_patterns("model_int8.onnx"))
    graph, weights = folder / "model.onnx", folder / "model.safetensors"
    if moved == "offset":
        model = onnx.load(graph, load_external_data=False)
        tensor = next(t for t in model.graph.initializer if "word_embeddings" in t.name)
        entry = next(entry for entry in tensor.external_data if entry.key == "offset")
        entry.value = str(int(entry.value) - 8)
        onnx.save(model, graph)
    else:
        if "cached" in moved:
            load_model(folder)
        content = weights.read_bytes()
        length = int.from_bytes(content[:8], "little")
        longer = content[8 : 8 + length] + 8 * b" "
        weights.write_bytes((length + 8).to_bytes(8, "little") + longer + content[8 + length :])
    with pytest.raises(ModelError, match=r"model\.safetensors has no tensor at byte"):
        load_model(folder)


def test_the_list_of_models_leaves_out_damaged_ones(tiny_models, tmp_path, monkeypatch):
    files = [("model.safetensors.index.json", []), ("config.json", {"architectures": 5})]
    for number, (file, content) in enumerate([*files, ("config.json", []), ("unused", 0)]):
        home = tmp_path / f"models--org--model{number}"
        snapshot = home / "snapshots" / ("a" * 40)
        shutil.copytree(tiny_models.without_onnx("bert"), snapshot)
        (home / "refs").mkdir()
        (home / "refs" / "main").write_text("a" * 40)
        if "index" in file:
            (snapshot / "model.safetensors").unlink()
        (snapshot / file).write_text(json.dumps(content))
    monkeypatch.setattr(hub_models.constants, "HF_HUB_CACHE", str(tmp_path))
    references = [model.reference for model in available_models()]
    assert references == ["embedded", "embedded:int8", "embedded:torch", "org/model3"]


# Like the `kernels` package, which downloads and imports a kernel; it notes what is requested.
KERNELS = """
import os
def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    def call(*arguments, **options):
        if name in ("get_kernel", "get_local_kernel", "load_kernel"):
            with open(os.environ["FETCHED"], "a") as file:
                print(name, *arguments, file=file)
            raise RuntimeError("fetched")
        return lambda own: own
    return call
"""
# transformers itself does fetch it: the stand-in is seen.
LOADING = """
import contextlib, os, sys
from fillmask_ui.models import load_model
for folder in sys.argv[1:]:
    load_model(folder)
assert not os.path.exists(os.environ["FETCHED"])
from transformers import AutoModelForMaskedLM
with contextlib.suppress(Exception):
    AutoModelForMaskedLM.from_pretrained(sys.argv[1])
"""
KERNEL = "kernels-community/flash-attn2"


@pytest.fixture
def changed(tiny_models, tmp_path):
    """`changed(name, **settings)`: a model on PyTorch whose config.json says more."""

    def make(name: str, **settings):
        folder = shutil.copytree(tiny_models.without_onnx("bert"), tmp_path / name)
        edit_json(folder / "config.json", **settings)
        return folder

    return make


def test_a_kernel_that_a_config_names_is_not_fetched(changed, tmp_path):
    package, log = tmp_path / "packages", tmp_path / "fetched.txt"
    metadata = "Metadata-Version: 2.1\nName: kernels\nVersion: 0.18.2\n"
    for folder, name, content in (
        ("kernels", "__init__.py", KERNELS),
        ("kernels-0.18.2.dist-info", "METADATA", metadata),
    ):
        (package / folder).mkdir(parents=True)
        (package / folder / name).write_text(content)
    inner = {"_attn_implementation": KERNEL, "_attn_implementation_internal": KERNEL}
    folders = [
        changed("a", attn_implementation=KERNEL, **inner),
        changed("b", attn_implementation={"": KERNEL}, _experts_implementation="deepgemm"),
    ]
    path = os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])
    environment = {"PYTHONPATH": path, "FETCHED": str(log)}
    done = ran(sys.executable, "-c", LOADING, *folders, **environment)
    assert done.returncode == 0, done.stderr
    assert "flash-attn2" in log.read_text()


def test_a_config_chooses_neither_outputs_nor_stored_quantization(changed, loaded):
    options = {"return_dict": False, "output_hidden_states": True, "output_attentions": True}
    model, usual = load_model(changed("outputs", **options)), loaded("bert", "torch")
    batch = batch_of(usual.vocabulary, texts_for("bert", "[MASK]"))
    np.testing.assert_array_equal(model.logits_at(*batch), usual.logits_at(*batch))
    np.testing.assert_array_equal(model.states_at(*batch), usual.states_at(*batch))
    assert model.signature.notes == usual.signature.notes
    # transformers refuses the pair of a kernel and attentions while it reads the config.
    kernel = load_model(changed("kernel", attn_implementation=KERNEL, output_attentions=True))
    assert kernel._model.config._attn_implementation == "sdpa"
    np.testing.assert_array_equal(kernel.logits_at(*batch), usual.logits_at(*batch))
    with pytest.raises(ModelError, match="quantization_config"):
        load_model(changed("fp8", quantization_config={"quant_method": "fp8"}))
