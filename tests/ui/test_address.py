"""The state in the address."""

import pytest

from fillmask_ui.ui.app import tab_of
from fillmask_ui.ui.explore import address
from fillmask_ui.ui.explore.view import Question

DEFAULT = Question("the [MASK].", "embedded", 10)


def read(**parameters):
    return address.read(parameters, DEFAULT)


def test_an_empty_address_is_the_page_as_it_opens():
    assert read() == DEFAULT


def test_everything_is_read():
    found = read(text="a ___", model="org/name@v1", k="25", words="x,y", unit="bits")
    assert found == Question("a ___", "org/name@v1", 25, "x,y", "bits")


@pytest.mark.parametrize(
    ("k", "read_as"),
    [
        ("0", 1),
        ("101", 100),
        ("-1", 10),
        ("ten", 10),
        ("", 10),
        ("9" * 5000, 10),
        ("٣", 3),
        ("²", 10),
    ],
)
def test_a_strange_k_is_no_error(k, read_as):
    assert read(k=k).top_k == read_as


def test_unknown_units_tabs_and_blank_models_are_the_default():
    assert read(unit="<b>").unit == "nats"
    assert read(model="  ").model == "embedded"
    assert tab_of("nowhere") == "explore"
    assert tab_of("guide") == "guide"


def test_the_script_cannot_be_broken_out_of():
    evil = "</script>'\"`${alert(1)}\u2028"
    script = address.write_script(Question(evil, "m", 1))
    assert "\u2028" not in script
    assert "'\\\"`" in script
