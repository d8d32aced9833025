"""Files that would run, but give wrong numbers, and a tokenizer that makes its library panic."""

import json
import shutil

import onnx
import pytest
from onnx import TensorProto, helper
from tokenizers import Regex, Tokenizer, pre_tokenizers

from fillmask_ui.errors import ModelError, ModelOutputError, OptionError
from fillmask_ui.files import asset
from fillmask_ui.models import load_model
from fillmask_ui.models.runtime import check_threads, cores


def test_a_panic_of_the_tokenizer_is_told(copy):
    path = copy() / "tokenizer.json"
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("(a+)+$"), "isolated")
    tokenizer.save(str(path))
    config = path.with_name("tokenizer_config.json")
    values = json.loads(config.read_text("utf-8"))
    config.write_text(json.dumps({**values, "tokenizer_class": "PreTrainedTokenizerFast"}), "utf-8")
    model = load_model(path.parent)
    with pytest.raises(ModelError, match=r"cannot be read as a tokenizer: .*retry-limit"):
        model.vocabulary.encode(64 * "a" + "!")


def test_threads_are_bounded_by_the_cores():
    most = max(64, 4 * cores())
    check_threads(None)
    check_threads(most)
    for wrong in (0, most + 1, 2**31):
        with pytest.raises(OptionError, match=rf"from 1 to {most} on this machine.*it was {wrong}"):
            check_threads(wrong)


@pytest.mark.parametrize("location", ["x" * 5000, "a\0b", "loop"], ids=["long", "zero", "loop"])
def test_external_data_under_an_impossible_name(tmp_path, tiny_models, location):
    source = tiny_models.folder("bert")
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((source / name).read_bytes())
    (tmp_path / "loop").symlink_to("loop")
    model = onnx.load(source / "onnx" / "model.onnx")
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", 5000 * "9")):
        tensor.external_data.add(key=key, value=value)
    onnx.save(model, tmp_path / "model.onnx")
    with pytest.raises(ModelError, match="no file is there"):
        load_model(tmp_path)


@pytest.mark.parametrize("name", ["onnx/model.onnx", "tokenizer.json", "config.json"])
def test_a_pointer_of_git_lfs(copy, name):
    path = copy() / name
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n")
    with pytest.raises(ModelError, match="cannot be read as"):
        load_model(path.parents[name.count("/")])


def test_a_graph_that_draws_random_numbers(copy):
    path = copy() / "onnx" / "model.onnx"
    model = onnx.load(path)
    name = model.graph.output[0].name
    noise = onnx.helper.make_node("RandomNormalLike", [name], ["noise"])
    model.graph.node.append(noise)
    model.graph.output[0].name = "noisy"
    model.graph.node.append(onnx.helper.make_node("Add", [name, "noise"], ["noisy"]))
    onnx.save(model, path)
    with pytest.raises(ModelError, match=r"draws random numbers \(RandomNormalLike\).*eval\(\)"):
        load_model(path)


def test_a_graph_that_gives_probabilities(copy):
    path = copy() / "onnx" / "model.onnx"
    model = onnx.load(path)
    name = model.graph.output[0].name
    model.graph.node.append(helper.make_node("Softmax", [name], ["probabilities"], axis=-1))
    model.graph.output[0].name = "probabilities"
    onnx.save(model, path)
    with pytest.raises(ModelOutputError, match="returns probabilities, and logits are wanted"):
        load_model(path)


def test_a_graph_whose_logits_are_transposed(copy):
    path = copy() / "onnx" / "model.onnx"
    model = onnx.load(path)
    name = model.graph.output[0].name
    model.graph.node.append(helper.make_node("Transpose", [name], ["turned"], perm=[1, 0, 2]))
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("turned", TensorProto.FLOAT, None))
    onnx.save(model, path)
    with pytest.raises(ModelError, match="its axes are in another order than"):
        load_model(path)


def test_a_decoder_is_refused(copy):
    folder = copy()
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, "is_decoder": True}), "utf-8")
    with pytest.raises(ModelError, match="says is_decoder true"):
        load_model(folder, runtime="torch")


def test_fewer_layers_than_the_weights_have(copy):
    folder = copy()
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config["num_hidden_layers"] -= 1
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    with pytest.raises(
        ModelError, match=r"have more layers than its config\.json asks for, such as"
    ):
        load_model(folder, runtime="torch")


@pytest.mark.parametrize("moved", [-8, 8])
def test_a_graph_that_takes_weights_across_two_tensors(tmp_path, moved):
    folder = tmp_path / "m"
    shutil.copytree(asset("model"), folder, ignore=shutil.ignore_patterns("model_int8.onnx"))
    path = folder / "onnx" / "model.onnx"
    model = onnx.load(path, load_external_data=False)
    tensor = next(own for own in model.graph.initializer if "word_embeddings" in own.name)
    entry = next(own for own in tensor.external_data if own.key == "offset")
    entry.value = str(int(entry.value) + moved)
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match=r"model\.safetensors has no tensor at bytes"):
        load_model(folder)


def _with_header(path, change):
    """A safetensors file with its header changed, and its numbers as they were."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = change(content[8 : 8 + length])
    path.write_bytes(len(header).to_bytes(8, "little") + header + content[8 + length :])


@pytest.mark.parametrize("cached", [False, True])
def test_weights_that_moved_below_a_graph(tmp_path, monkeypatch, cached):
    monkeypatch.setenv("FILLMASK_UI_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "m"
    shutil.copytree(asset("model"), folder, ignore=shutil.ignore_patterns("model_int8.onnx"))
    if cached:
        load_model(folder)
    _with_header(folder / "model.safetensors", lambda header: header + 8 * b" ")
    with pytest.raises(ModelError, match=r"model\.safetensors has no tensor at bytes"):
        load_model(folder)
