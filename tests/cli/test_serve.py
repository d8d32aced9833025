"""The page's own options, and the page without a server that `site` writes."""

import os
import sys
import urllib.request

import pytest
from recorded.program import ran

from fillmask_ui.cli.serve import _pass_proxies_by


@pytest.mark.parametrize("named", ["http_proxy", "HTTPS_PROXY", "all_proxy"])
def test_the_page_is_asked_past_a_proxy(monkeypatch, named):
    for name in list(urllib.request.getproxies_environment()):
        monkeypatch.delenv(f"{name}_proxy", raising=False)
        monkeypatch.delenv(f"{name}_proxy".upper(), raising=False)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    _pass_proxies_by("192.0.2.1")
    assert "no_proxy" not in os.environ
    os.environ |= {named: "http://127.0.0.1:9", "NO_PROXY": "intern.example"}
    _pass_proxies_by("192.0.2.1")
    for host in ("localhost", "127.0.0.1", "192.0.2.1", "intern.example"):
        assert urllib.request.proxy_bypass_environment(host)
    assert not urllib.request.proxy_bypass_environment("huggingface.co")


def test_the_process_ends_in_order_beside_threads_in_a_library():
    """Python would end such a thread as it comes back, and C++ then the process, with SIGABRT."""
    code = (
        "import atexit, sys, threading, time\n"
        "from fillmask_ui import __main__\n"
        "from fillmask_ui.cli import main\n"
        "def run():\n"
        "    threading.Thread(target=time.sleep, args=[60], daemon=True).start()\n"
        "    atexit.register(print, 'tidied')\n"
        "    print('done')\n"
        "    raise SystemExit(3)\n"
        "main.run = run\n"
        "__main__.main()\n"
    )
    ended = ran(sys.executable, "-c", code)
    assert (ended.returncode, ended.stdout) == (3, "done\ntidied\n")
