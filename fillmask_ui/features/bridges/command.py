"""`fillmask-ui runs push`: a run to an experiment tracker."""

from fillmask_ui.cli.options import option
from fillmask_ui.cli.runs import RUN_NAME, store
from fillmask_ui.cli.terminal import say
from fillmask_ui.features.bridges.push import push as push_run


def push(
    run: str = RUN_NAME,
    to: str = option(..., "The tracker: trackio, wandb or mlflow.", metavar="TRACKER"),
    project: str = option(
        "fillmask-ui", "Project (mlflow: experiment) of the tracker.", metavar="NAME"
    ),
) -> None:
    """Write a run to an experiment tracker: figures, intervals, signature, a row per text."""
    pushed = push_run(store().open(run), to, project)
    say(
        f"run {pushed.name} is in {to}, project {project}: {len(pushed.figures):,} figures, "
        f"{len(pushed.rows):,} rows"
    )
