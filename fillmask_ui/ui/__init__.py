"""The page: a folder or file per tab, assembled in `page`, with its templates."""

from pathlib import Path

from fillmask_ui.show.render import add_templates

_HOME = Path(__file__).parent
add_templates("ui", _HOME / "templates")
add_templates("explore", _HOME / "explore" / "templates")
add_templates("evaluate", _HOME / "evaluate" / "templates")
