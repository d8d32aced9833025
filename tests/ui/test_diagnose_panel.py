"""The diagnose panel of the Quantize tab: what it shows, and the variant that its button makes."""

import html
import re
import shutil
import time

import onnx
import pytest
from planted import plant

from fillmask_ui.models import ModelStore, load_choice, load_model
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.quantizing.make_variants import quantize
from fillmask_ui.quantizing.variant_store import Recipe, VariantStore
from fillmask_ui.ui.components import answered
from fillmask_ui.ui.quantize import diagnosis_view
from fillmask_ui.ui.session import Session


@pytest.fixture
def kept(tiny_models, tmp_path, monkeypatch):
    """A tiny BERT with an int8 variant in the store, whose bias has a turned sign."""
    home = tiny_models.folder("bert")
    monkeypatch.setenv("FILLMASK_UI_VARIANTS", str(tmp_path))
    own = VariantStore(tmp_path).home(str(home), load_model(home).signature)
    list(quantize(ModelChoice(str(home)), own.output(Recipe()), ["int8"]))
    (variant,) = own.variants()
    graph = onnx.load(variant.path)
    plant(graph, "sign", 1, seed=5)
    onnx.save(graph, variant.path)
    return home, variant.path, own


def ask(session, path, home, **values):
    given = {"variant": str(path), "baseline": str(home), "name": "int8 <b>", "most": "1"}
    request = {"name": "diagnose", "model": str(path), "values": given | values}
    for _ in range(600):
        told = answered(diagnosis_view.figure, session, request)
        if told["kind"] != "busy":
            return told
        time.sleep(0.05)
    raise AssertionError("it does not end")


def words(piece):
    return html.unescape(re.sub(r"<[^>]+>", " ", piece))


def test_it_names_the_part_draws_depth_and_makes_the_variant(kept):
    home, path, own = kept
    session = Session(ModelStore())
    told = ask(session, path, home, budget="100")
    assert told["kind"] == "shown", told
    pieces = told["pieces"]
    assert "Stands out: model.bert.encoder.layer.1." in words(pieces["story"])
    assert "int8 &lt;b&gt;" in pieces["story"] and "onnxruntime" in pieces["story"]
    assert pieces["parts"].count("stands out") == 1
    assert pieces["parts"].index("fm-diagnose-out") < pieces["parts"].index("fm-diagnose-db")
    assert "layer 1" in pieces["depth"] and "<polyline" in pieces["depth"]
    assert "One part in full precision" in pieces["left_out"]
    assert "within the budget of 100.00%" in words(pieces["greedy"]) and not pieces["made"]
    assert "Make this variant" not in pieces["greedy"]
    told = ask(session, path, home, budget="0", make="1")
    assert told["kind"] == "shown", told
    assert "Make this variant" in told["pieces"]["greedy"]
    (made,) = [variant for variant in own.variants() if variant.exclude]
    assert made.exclude[0].endswith(".bias") and made.figures is None
    assert str(made.path) in html.unescape(told["pieces"]["made"])
    assert load_choice(ModelChoice(str(made.path))).signature.precision == "int8"
    again = ask(session, path, home, budget="0", make="1")
    assert again["pieces"] == told["pieces"] and len(own.variants()) == 2


def test_a_file_from_elsewhere_is_diagnosed_but_not_kept(kept, tmp_path):
    home, path, _ = kept
    session = Session(ModelStore())
    other = path.with_name("model_other.onnx")
    shutil.copyfile(path, other)
    told = ask(session, other, home, budget="0", make="1")
    assert told["kind"] == "error" or not told["pieces"]["made"]
    if told["kind"] == "error":
        assert "--apply FILE.onnx" in told["notice"]
    told = ask(session, path, "no-such-folder/x")
    assert told["kind"] == "error"
