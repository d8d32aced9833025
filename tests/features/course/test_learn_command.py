"""`learn` opens the browser at its chapter."""

import os
import signal
import stat
import subprocess
import sys
import time
import urllib.request

from cli.test_processes import HEED
from serving import free_port


def test_the_browser_is_opened_at_the_chapter(tmp_path):
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(browser.stat().st_mode | stat.S_IEXEC)
    command = [sys.executable, "-m", "fillmask_ui", "learn", "5", "--port", str(free_port())]
    environment = {**os.environ, "BROWSER": f"{browser} %s"}
    page = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, preexec_fn=HEED)
    try:
        deadline = time.monotonic() + 300
        while not (opened.exists() and opened.read_text()) and time.monotonic() < deadline:
            assert page.poll() is None
            time.sleep(0.2)
        url = opened.read_text().strip()
        assert url.endswith("/?tab=learn&chapter=ledger")
        assert urllib.request.urlopen(url, timeout=300).status == 200
    finally:
        page.send_signal(signal.SIGINT)
        assert page.wait(300) in (0, 130)
