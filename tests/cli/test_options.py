"""Options of the shell that are derived from configurations."""

from __future__ import annotations

import typer
from typer.testing import CliRunner

from fillmask_ui.cli.main import app
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.options import options_of


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
