"""The page as `python app.py`, in a Space too; `fillmask-ui` is the same."""

from __future__ import annotations

import os
import sys

from fillmask_ui.cli.serve import check_address
from fillmask_ui.errors import OptionError

if __name__ == "__main__" and len(sys.argv) > 1:  # a command, which ends by itself
    from fillmask_ui.cli.main import run

    run()

try:
    check_address()
except OptionError as error:
    raise SystemExit(f"error: {error}") from None

from fillmask_ui.ui.page import build_app, launch, launch_options

# Strangers reach a Space.
PUBLIC = "SPACE_ID" in os.environ

demo = build_app(public=PUBLIC)

if __name__ == "__main__":
    print("The page is at", launch(demo, quiet=True, **launch_options(PUBLIC)), flush=True)
    demo.block_thread()
