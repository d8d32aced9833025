"""The boundaries against damaged files: panics, growth, sizes, memory and endless graphs."""

import json
import os
import shutil
import signal
import threading
import time

import onnx
import pytest
from onnx import TensorProto, helper
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from fillmask_ui.assets import asset
from fillmask_ui.errors import ModelError, ModelOutputError, OptionError
from fillmask_ui.models import load_model, memory
from fillmask_ui.models import onnx as onnx_runtime
from fillmask_ui.models.configuration import ModelConfig
from fillmask_ui.models.memory import available_bytes, check_fits
from fillmask_ui.models.quiet import quiet_panics
from fillmask_ui.models.sizes import StoredSize, check_new_sizes, check_sizes
from fillmask_ui.models.tokenizer_guard import (
    TokenizerPanicError,
    refuse_charsmap,
    refuse_growth,
    tokenizer_errors,
)
from fillmask_ui.models.tuning import check_threads, cores

# Shapes of published models, by their config.json, and how many numbers their files hold.
PUBLISHED = {
    "bert-base-uncased": (
        {"vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12},
        StoredSize(202, 109_514_298),
    ),
    "albert-xxlarge-v2": (
        {
            "vocab_size": 30000,
            "hidden_size": 4096,
            "embedding_size": 128,
            "num_hidden_layers": 12,
            "num_hidden_groups": 1,
        },
        StoredSize(29, 206_000_000),
    ),
    "xlm-roberta-base": (
        {"vocab_size": 250002, "hidden_size": 768, "num_hidden_layers": 12},
        StoredSize(202, 278_295_186),
    ),
    "google/mobilebert-uncased": (
        {
            "vocab_size": 30522,
            "hidden_size": 512,
            "embedding_size": 128,
            "num_hidden_layers": 24,
        },
        StoredSize(1118, 24_600_000),
    ),
}


def test_a_panic_is_an_error_and_prints_nothing(capfd):
    backtracking = pre_tokenizers.Split(Regex("(a+)+$"), "isolated")
    begun = time.monotonic()
    with (
        pytest.raises(TokenizerPanicError, match="retry-limit"),
        quiet_panics(),
        tokenizer_errors("it failed"),
    ):
        backtracking.pre_tokenize_str(64 * "a" + "!")
    assert time.monotonic() - begun < 30
    assert capfd.readouterr().err == ""


def test_what_else_is_printed_meanwhile_is_kept(capfd):
    with quiet_panics():
        os.write(2, b"a remark")
    assert capfd.readouterr().err == "a remark"


def test_an_interruption_is_none_of_the_librarys_errors():
    with pytest.raises(KeyboardInterrupt), tokenizer_errors("it failed"):
        raise KeyboardInterrupt


def _backend(*parts):
    backend = Tokenizer(models.WordPiece({"[UNK]": 0}, unk_token="[UNK]"))
    backend.normalizer = normalizers.Sequence(list(parts))
    return backend


REPLACEMENTS = [
    [normalizers.Replace("a", 10 * "a")],
    [normalizers.Replace("ab", 40 * "a"), normalizers.Replace("a", "bbb")],
    [normalizers.Replace(Regex(""), "xy")],
    [normalizers.Prepend(200 * "a"), normalizers.Replace(Regex("a|$"), "bb")],
    [normalizers.NFKC(), normalizers.Replace(" ", "▁")],
]


@pytest.mark.parametrize("parts", REPLACEMENTS, ids=str)
def test_the_bound_on_growth_holds_for_what_the_library_does(parts, monkeypatch):
    from fillmask_ui.models.tokenizer_guard import _growth

    backend = _backend(*parts)
    refuse_growth(backend, "m")  # none of them is beyond what is allowed
    bound = _growth(json.loads(backend.normalizer.__getstate__()))
    for text in ("", "a", "abab ab", "x y z", 50 * "a"):
        normalized = backend.normalizer.normalize_str(text)
        assert len(normalized) <= bound.factor * (len(text) + bound.prepended + 1)


@pytest.mark.parametrize(
    "parts",
    [
        [normalizers.Replace("a", 257 * "a")],
        6 * [normalizers.Replace("a", "aaa")],
        20 * [normalizers.Replace(Regex("q?"), "x")],
        [normalizers.Sequence(11 * [normalizers.Prepend(100 * "a")])],
    ],
    ids=["one", "several", "expressions", "in front"],
)
def test_growth_beyond_the_bound_is_refused(parts):
    with pytest.raises(ModelError, match="may not fit into memory"):
        refuse_growth(_backend(*parts), "m")


def test_a_table_of_characters_under_an_escaped_name_is_found(tmp_path):
    file = tmp_path / "tokenizer.json"
    file.write_text('{"precompiled\\u005fcharsmap": "////////"}', encoding="utf-8")
    with pytest.raises(ModelError, match="precompiled_charsmap is cut short"):
        refuse_charsmap(file, "m")


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_models_are_what_their_configs_say(name, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: None)
    config, stored = PUBLISHED[name]
    check_sizes(name, ModelConfig(config), stored)
    with pytest.raises(ModelError, match="they do not belong together"):
        check_sizes(name, ModelConfig(config), StoredSize(stored.tensors, stored.numbers // 100))


def test_weights_beyond_memory_are_refused(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 10**9)
    check_fits("m", 10**9, "in float32")
    with pytest.raises(ModelError, match=r"m needs about 4\.0 GB .* 1\.0 GB are free"):
        check_sizes("m", ModelConfig(), StoredSize(1, 10**9))
    with pytest.raises(ModelError, match="to be trained"):
        check_new_sizes("c.json", {"hidden_size": 10_000, "num_hidden_layers": 10})


def test_the_limit_of_a_container_counts(tmp_path, monkeypatch):
    files = [tmp_path / name for name in ("max", "current", "stat")]
    for file, content in zip(files, ("1000\n", "900\n", "anon 1\nactive_file 30\n"), strict=True):
        file.write_text(content)
    monkeypatch.setattr(memory, "_GROUPS", (tuple(files),))
    assert available_bytes() == 130
    files[0].write_text("max\n")
    assert available_bytes() != 130


def test_threads_are_bounded_by_the_cores():
    most = max(64, 4 * cores())
    check_threads(None)
    check_threads(most)
    for wrong in (0, most + 1, 2**31):
        with pytest.raises(OptionError, match=rf"from 1 to {most} on this machine.*it was {wrong}"):
            check_threads(wrong)


def test_an_endless_loop_in_a_graph_is_stopped(tmp_path, tiny_models, monkeypatch):
    source = tiny_models.folder("bert")
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((source / name).read_bytes())
    model = onnx.load(source / "onnx" / "model.onnx")
    logits = model.graph.output[0].name
    values = [helper.make_tensor_value_info("i", TensorProto.INT64, [])]
    values.append(helper.make_tensor_value_info("go", TensorProto.BOOL, []))
    values.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, None))
    ends = [helper.make_tensor_value_info("go_on", TensorProto.BOOL, [])]
    ends.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
    steps = [helper.make_node("Identity", [a], [b]) for a, b in (("go", "go_on"), ("x", "y"))]
    body = helper.make_graph(steps, "body", values, ends)
    model.graph.initializer.append(helper.make_tensor("count", TensorProto.INT64, [], [2**62]))
    model.graph.initializer.append(helper.make_tensor("true", TensorProto.BOOL, [], [True]))
    model.graph.node.append(
        helper.make_node("Loop", ["count", "true", logits], ["looped"], body=body)
    )
    model.graph.output[0].name = "looped"
    onnx.save(model, tmp_path / "model.onnx")
    with monkeypatch.context() as patched:
        patched.setattr(onnx_runtime, "_PROBE_SECONDS", 0.2)
        with pytest.raises(ModelError, match="a loop without end"):
            load_model(tmp_path)
    begun = time.monotonic()
    interrupt = (threading.get_ident(), signal.SIGINT)
    threading.Timer(2, signal.pthread_kill, interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        load_model(tmp_path)
    assert time.monotonic() - begun < 15  # and not the 20 s after which it ends by itself


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
    with pytest.raises(ModelError, match=rf"{name} is a git-LFS pointer.*git lfs pull"):
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


def test_a_pipe_in_the_place_of_a_graph(copy):
    path = copy() / "onnx" / "model.onnx"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ModelError, match=r"model\.onnx is no file \(but a folder, a pipe"):
        load_model(path.parents[1])


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


@pytest.mark.parametrize("content", [b'{"version": "1.0", ', "{}".encode("utf-16")])
def test_a_broken_file_of_a_tokenizer_is_named(copy, content):
    folder = copy()
    (folder / "tokenizer.json").write_bytes(content)
    with pytest.raises(ModelError, match=r"tokenizer\.json cannot be read as JSON: .*; fetch it"):
        load_model(folder)


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


def test_whole_numbers_in_place_of_fractions(tmp_path):
    folder = tmp_path / "m"
    shutil.copytree(asset("model"), folder, ignore=shutil.ignore_patterns("onnx"))
    name = b"bert.encoder.layer.0.attention.self.query.weight"

    def change(header):
        values = json.loads(header)
        values[name.decode()]["dtype"] = "I16"
        made = json.dumps(values).encode()
        return made + b" " * (-len(made) % 8)

    _with_header(folder / "model.safetensors", change)
    with pytest.raises(ModelError, match=r"query\.weight of .* as I16, where numbers with"):
        load_model(folder)
