"""`python -m fillmask_ui` is `fillmask-ui`."""

from fillmask_ui.cli.main import run

if __name__ == "__main__":
    run()
