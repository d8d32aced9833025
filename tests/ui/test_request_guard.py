"""Which requests a page refuses before Gradio sees them, and what else it answers with."""

import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, urlsplit

import httpx
import pytest
from serving import serving
from table_model import TableModel

from fillmask_ui.models import ModelStore
from fillmask_ui.ui import request_guard
from fillmask_ui.ui.page import build_app

ASKED = {"data": ["A [MASK]."], "session_hash": "visitor"}
FORM = {"files": {"field": ("a.txt", b"a b")}}


def page(**options):
    store = ModelStore(loader=lambda reference, **_: TableModel())
    return serving(build_app(store, "table", **options), **options)


@pytest.fixture(scope="module")
def private():
    with page() as url:
        yield url


@pytest.fixture(scope="module")
def public():
    with page(public=True) as url:
        yield url


@pytest.fixture
def http():
    with httpx.Client(trust_env=False, timeout=300) as client:
        yield client


def join(http, url, value):
    """Ask the public page's first event with a value in place of what its controls hold."""
    content = {"data": [value], "fn_index": 0, "session_hash": "visitor"}
    return http.post(f"{url}gradio_api/queue/join", json=content)


def upload(http, url, content, name="a.txt"):
    return http.post(f"{url}gradio_api/upload", files={"files": (name, content)})


def file_of(path, url=None):
    return {"path": path, "meta": {"_type": "gradio.FileData"}} | ({"url": url} if url else {})


def soon(true):
    """Whether something comes true within ten seconds."""
    return any(true() or time.sleep(0.1) for _ in range(100))


# ---- Names of this machine, and other sites


def test_the_page_answers_to_names_of_this_machine_alone(http, private):
    accepted, foreign = (
        "LOCALHOST:7860 127.0.0.1:1 [::1]:7860",
        "evil.example 127.0.0.1.evil.example:80",
    )
    for host in (*accepted.split(), *foreign.split()):
        reply = http.get(private + "config", headers={"Host": host})
        assert reply.status_code == (200 if host in accepted else 400), host


@pytest.mark.parametrize(
    ("server_name", "public_page", "environment", "guarded"),
    [
        (None, False, {}, True),
        ("127.0.0.2", False, {"FILLMASK_UI_HOSTS": "Fill.example.org, x.example:8443"}, True),
        (None, True, {}, False),
        ("0.0.0.0", False, {}, False),
        (None, False, {"GRADIO_SERVER_NAME": "192.0.2.1"}, False),
    ],
)
def test_a_page_for_its_own_machine_minds_its_name(
    monkeypatch, server_name, public_page, environment, guarded
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    first, *host_guards = request_guard.middleware(server_name, public=public_page)
    assert bool(host_guards) is guarded
    if guarded:
        named = environment.get("FILLMASK_UI_HOSTS") and {"fill.example.org", "x.example"}
        assert {"localhost", *(named or ())} <= set(first.kwargs["allowed_hosts"])


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),  # a program
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "OWN"}, 200),
    ],
)
def test_a_private_page_takes_no_requests_of_other_sites(http, private, headers, status):
    origin = private.rstrip("/")
    headers = {name: value.replace("OWN", origin) for name, value in headers.items()}
    sent = http.post(f"{private}gradio_api/upload", headers=headers, **FORM)
    assert sent.status_code == status
    text = {"Content-Type": "text/plain", **headers}
    reply = http.post(f"{private}gradio_api/call/predict", headers=text, content='{"data": []}')
    assert (reply.status_code == 403) is (status == 403)
    assert http.get(private, headers=headers).status_code == 200


# ---- What strangers send to a public page


@pytest.mark.parametrize("path", ["queue/join", "component_server", "api/predict", "cancel"])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_large_request_is_refused_unread(public, path, chunked):
    """200 MB are announced; the page answers after 1 MB at most, whether it knows the length."""
    address = urlsplit(public)
    length = "Transfer-Encoding: chunked" if chunked else "Content-Length: 200000000"
    head = f"POST /gradio_api/{path} HTTP/1.1\r\nHost: {address.netloc}\r\n{length}\r\n"
    block = b" " * 65_536
    with socket.create_connection((address.hostname, address.port), timeout=300) as sent:
        sent.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode())
        with suppress(ConnectionError):  # it may end the connection before we stop
            for _ in range(17):
                sent.sendall(b"10000\r\n" + block + b"\r\n" if chunked else block)
        assert sent.recv(100).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("body", [b"{", b"[" * 100_000, b"a=b", b'"\xff"'])
def test_a_public_page_takes_json_alone(http, public, body):
    assert http.get(f"{public}gradio_api/deep_link?session_hash=visitor").status_code == 404
    answer = http.post(f"{public}gradio_api/component_server", content=body)
    assert (answer.status_code, answer.json()["detail"]) == (400, "this page takes JSON")
    assert http.post(f"{public}gradio_api/component_server", **FORM).status_code == 400


def test_files_that_were_not_uploaded_are_refused_and_nothing_is_fetched(http, public, tmp_path):
    fetched = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept():
            with suppress(OSError):
                listener.accept()
                fetched.set()

        waiting = threading.Thread(target=accept, daemon=True)
        waiting.start()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/a.txt"
        (uploaded,) = upload(http, public, b"mine").json()
        (tmp_path / "secret.txt").write_text("secret")
        for path, url in (
            (address, None),
            (address, address),
            (uploaded, address),
            (str(tmp_path / "secret.txt"), None),
            (f"{uploaded}/../../../secret.txt", None),
            ([uploaded], None),
        ):
            assert join(http, public, file_of(path, url)).status_code == 400
            assert join(http, public, [{"deep": file_of(path, url)}]).status_code == 400
            assert join(http, public, {"path": path, "url": url}).status_code == 400
        waiting.join(0.5)
    assert not fetched.is_set()


@pytest.mark.parametrize("name", ["a.txt", "my own%20 töxt.csv"])
def test_files_that_were_uploaded_pass_as_a_browser_sends_them(http, public, name):
    (path,) = upload(http, public, f"of {name}".encode(), name).json()
    for url in (None, f"{public}gradio_api/file={path}", f"{public}gradio_api/file={quote(path)}"):
        assert join(http, public, file_of(path, url)).status_code == 200


def test_uploads_are_bounded_in_total_and_for_one_address(http, monkeypatch):
    with page(public=True) as url:
        assert http.post(f"{url}gradio_api/upload", content=iter([b"a"])).status_code == 411
        assert upload(http, url, b"a").status_code == 200  # which counts as LEAST_UPLOAD
        for bound in ("MOST_UPLOADS", "MOST_OF_ADDRESS"):
            with monkeypatch.context() as patched:
                patched.setattr(request_guard, bound, 250_000)
                assert upload(http, url, b"b" * 160_000).status_code == 413
        monkeypatch.setattr(request_guard, "MOST_UPLOADS", 250_000)
        assert upload(http, url, b"b" * 120_000).status_code == 200
        refused = upload(http, url, b"c")
        assert (refused.status_code, "some minutes" in refused.text) == (413, True)
        monkeypatch.setattr(request_guard, "UPLOAD_SECONDS", 0.0)
        assert upload(http, url, b"c").status_code == 200


def test_uploads_end_with_the_session_that_named_them_last(http, public):
    paths = [upload(http, public, f"{n}".encode()).json()[0] for n in range(3)]
    for path, session in ((paths[0], "first"), (paths[1], "first"), (paths[1], "second")):
        content = {"data": [file_of(path)], "fn_index": 0, "session_hash": session}
        assert http.post(f"{public}gradio_api/queue/join", json=content).status_code == 200
    with http.stream("GET", f"{public}gradio_api/heartbeat/first") as alive:
        beats = alive.iter_lines()  # kept: once it is collected, the connection closes
        next(beats)
        assert all(Path(path).exists() for path in paths)
    assert soon(lambda: not Path(paths[0]).exists())
    assert Path(paths[1]).exists()
    assert Path(paths[2]).exists()
    assert join(http, public, file_of(paths[0])).status_code == 400


def test_what_is_broken_off_is_deleted_as_old_uploads_are(http, public, monkeypatch):
    folder = Path(upload(http, public, b"first").json()[0]).parents[1]
    address = urlsplit(public)
    with socket.create_connection((address.hostname, address.port), timeout=300) as slow:
        slow.sendall(
            f"POST /gradio_api/upload HTTP/1.1\r\nHost: {address.netloc}\r\n"
            "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 800000\r\n\r\n"
            '--b\r\nContent-Disposition: form-data; name="files"; filename="s"\r\n\r\n'.encode()
            + b"s" * 300_000
        )
        assert soon(lambda: [*folder.glob("tmp*")])
    monkeypatch.setattr(request_guard, "UPLOAD_SECONDS", 0.0)

    def later():
        """A busy server may take a moment to notice what was broken off."""
        assert upload(http, public, b"later").status_code == 200
        return not [*folder.glob("tmp*")]

    assert soon(later)


# ---- What every page says of itself


@pytest.mark.parametrize(
    ("space", "framed_by"),
    [(None, "'self'"), ("me/it", "'self' https://huggingface.co https://*.hf.space")],
)
def test_a_page_says_what_it_loads_and_who_may_frame_it(
    http, public, private, monkeypatch, space, framed_by
):
    if space:
        monkeypatch.setenv("SPACE_ID", space)
    for url in (public, private):
        policy = http.get(url).headers["content-security-policy"]
        parts = dict(part.split(" ", 1) for part in policy.split("; "))
        assert parts["frame-ancestors"] == framed_by
        assert parts["object-src"] == "'none'"
        assert "http" not in parts["script-src"] + parts["connect-src"] + parts["default-src"]
