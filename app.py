"""The page as a Space and as `python app.py`; `fillmask-ui` does the same with options."""

from __future__ import annotations

from fillmask_ui.ui.app import build_app, launch_options

demo = build_app()

if __name__ == "__main__":
    demo.launch(**launch_options())
