"""The README names every command and every option."""

from pathlib import Path

import pytest
import typer

from fillmask_ui.cli.main import app

README = (Path(__file__).parent.parent / "README.md").read_text()
PROGRAM = typer.main.get_command(app)
STANDARD = {"--help", "--install-completion", "--show-completion"}


def options(command):
    for parameter in command.params:
        yield from (name for name in parameter.opts if name.startswith("--"))


@pytest.mark.parametrize("name", sorted(PROGRAM.commands))
def test_every_command_is_documented(name):
    assert f"`fillmask-ui {name}" in README


@pytest.mark.parametrize(
    ("name", "option"),
    sorted(
        {("", option) for option in options(PROGRAM)}
        | {(n, option) for n, command in PROGRAM.commands.items() for option in options(command)}
    ),
)
def test_every_option_is_documented(name, option):
    assert option in STANDARD or f"`{option}" in README, f"{name} {option}"
