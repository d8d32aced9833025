"""Take the README's pictures again, from the page as it is.

PYTHONPATH=tests python tests/ui/retake_screenshots.py [FOLDER]    (assets/ if not given)
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from urllib.parse import urlencode

from chromium import chromium

from fillmask_ui.ui.app import build_app, launch_options

ASSETS = Path(__file__).parent.parent.parent / "assets"
TEXT = "The [MASK] treated her patients until late at [MASK]."
# Name, theme, width and height in pixels.
PICTURES = (
    ("explore-light.png", "light", 1200, 900),
    ("explore-dark.png", "dark", 1200, 900),
)


def main(folder: Path) -> None:
    """Serve the page, open it in chromium, write one file a picture."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    demo = build_app()
    options = launch_options()
    demo.launch(server_name="127.0.0.1", server_port=port, prevent_thread_lock=True, **options)
    with chromium() as browser:
        for name, theme, width, height in PICTURES:
            page = browser.new_page(viewport={"width": width, "height": height})
            page.set_default_timeout(120_000)
            query = urlencode({"text": TEXT, "words": "doctor, paediatrician", "__theme": theme})
            page.goto(f"http://127.0.0.1:{port}/?{query}")
            page.locator("#joint table").wait_for()
            page.locator("#chart .bartext").first.wait_for()
            page.evaluate("document.fonts.ready")
            page.screenshot(path=folder / name, animations="disabled")
            print(folder / name, (folder / name).stat().st_size, "bytes")
            page.close()
    demo.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ASSETS)
