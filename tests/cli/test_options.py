"""Options of the shell that are derived from configurations."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field

import pytest
import typer
from typer.testing import CliRunner

from fillmask_ui.cli.main import app
from fillmask_ui.cli.options import given_options, with_options
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.options import option, options_of


@dataclass(frozen=True)
class Recipe:
    share: float = option(0.15, "A share.", flags=("--mask-share", "-s"), metavar="S", most=1)
    rounds: int = option(None, "How many.", least=1)


@dataclass(frozen=True)
class Texts:
    where: str = option(MISSING, "Where.")
    recipe: Recipe = field(default_factory=Recipe)
    shuffle: bool = option(True, "In another order.")
    stream: bool = option(False, "While they are used.")
    seed: int = 42  # no option


@dataclass(frozen=True)
class Masks:
    seed: int = option(7, "Of the masks.")


def called(*arguments):
    found = []
    program = typer.Typer(rich_markup_mode=None)

    @program.command()
    @with_options
    def show(context: typer.Context, first: int = 1, *, texts: Texts, masks: Masks) -> None:
        found.extend([first, texts, masks, given_options(context, beside={"first"})])

    result = CliRunner().invoke(program, arguments)
    return found or result.output


def test_defaults_are_those_of_the_fields():
    assert called("--where", "here") == [1, Texts("here"), Masks(), ["--where"]]


def test_fields_of_nested_configurations_are_options_too():
    typed = ("--where", "x", "-s", "0.5", "--rounds", "3", "--no-shuffle", "--stream")
    expected = Texts("x", Recipe(0.5, 3), shuffle=False, stream=True)
    given = ["--where", "--mask-share", "--rounds", "--shuffle", "--stream"]
    assert called(*typed, "--first", "2") == [2, expected, Masks(), given]


def test_a_field_without_an_option_keeps_its_default():
    """Also where another configuration has an option of that name."""
    _, texts, masks, _ = called("--where", "x", "--seed", "3")
    assert (texts.seed, masks.seed) == (42, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Missing option '--where'"),
        (("--where", "x", "--rounds", "0"), "Invalid value for '--rounds'"),
        (("--where", "x", "--mask-share", "2"), "Invalid value for '--mask-share'"),
        (("--where", "x", "--no-stream"), "No such option: --no-stream"),
        (("--help",), "Of the masks."),
    ],
)
def test_what_is_missing_or_out_of_bounds_is_told(arguments, message):
    assert message in called(*arguments)


def test_every_option_of_a_metric_is_one_of_eval():
    given = {
        flag for entry in typer.main.get_command(app).commands["eval"].params for flag in entry.opts
    }
    owners = EvaluationConfig.option_owners()
    wanted = {flag for owner in owners for own in options_of(owner).values() for flag in own.flags}
    assert wanted | {"--mask-probability"} <= given


def test_short_help_of_a_command_is_that_of_its_module():
    for name, command in typer.main.get_command(app).commands.items():
        own = CliRunner().invoke(app, [name, "--help"]).output
        assert command.help in " ".join(own.split())
