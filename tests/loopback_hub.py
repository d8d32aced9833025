"""A hub on 127.0.0.1 that speaks enough of the Hugging Face protocol for the real clients.

A pytest plugin: the fixture `loopback_hub` is a running server; `hub.add("org/name", files)`
publishes a repository, `hub.environment(cache)` gives the variables under which a subprocess with
huggingface_hub or datasets talks to it and to nothing else (both read them when imported).

Served: repository information and file tree of a revision, information on paths, files by HEAD
and GET with ranges, for models and data sets; errors with the codes that clients tell apart.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

_KINDS = {"models": "model", "datasets": "dataset"}
_XET_TOKEN = "xet-token"


@dataclass
class Repository:
    """One published repository.

    Attributes:
        kind: `model` or `dataset`.
        name: `organisation/name`.
        files: content by path, of each commit.
        revisions: branch or tag -> commit.
        gated: whether files are refused as those of a gated repository are.
    """

    kind: str
    name: str
    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    revisions: dict[str, str] = field(default_factory=dict)
    gated: bool = False


class LoopbackHub:
    """The server.

    Attributes:
        requests: what was asked so far, as `GET /path`.
        cut_after: drop the connection after so many bytes of a file; None for never.
        silent: whether to take requests and answer none of them.
        xet_storage: address that clients are sent to for the content of files, as the real hub
            sends them to its Xet storage; "" to serve all of it here.
    """

    def __init__(self) -> None:
        self._repositories: dict[tuple[str, str], Repository] = {}
        self.requests: list[str] = []
        self.cut_after: int | None = None
        self.silent = False
        self._stopped = threading.Event()
        self.xet_storage = ""
        hub = self

        class Handler(_Handler):
            server_hub = hub

        self._handler = Handler
        self._port = 0
        self._running = False

    @property
    def endpoint(self) -> str:
        """Address; the same after a stop and a new start."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), self._handler)
        self._server.daemon_threads = True
        self._port = self._server.server_address[1]
        self._running = True
        self._stopped.clear()
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def stop(self) -> None:
        """Refuse connections from now on; more than once does no harm."""
        if not self._running:
            return
        self._running = False
        self._stopped.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def add(
        self,
        name: str,
        files: Mapping[str, bytes] | Path,
        *,
        kind: str = "model",
        revision: str = "main",
        gated: bool = False,
    ) -> str:
        """Publish files as a new commit that `revision` points to.

        Args:
            name: `organisation/name`.
            files: content by path, or a folder.
            kind: `model` or `dataset`.
            revision: branch or tag.
            gated: whether to refuse the files.

        Returns:
            The commit, 40 hexadecimal digits.
        """
        if isinstance(files, Path):
            files = {
                path.relative_to(files).as_posix(): path.read_bytes()
                for path in sorted(files.rglob("*"))
                if path.is_file()
            }
        repository = self._repositories.setdefault((kind, name), Repository(kind, name))
        repository.gated = gated
        digest = hashlib.sha1(f"{kind}/{name}".encode())
        for path, content in sorted(files.items()):
            digest.update(path.encode() + hashlib.sha1(content).digest())
        commit = digest.hexdigest()
        repository.files[commit] = dict(files)
        repository.revisions[revision] = commit
        return commit

    def environment(self, cache: Path) -> dict[str, str]:
        """Variables for a subprocess: this hub, an own cache, no telemetry, no credentials."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGING"))}
        return {
            **kept,
            "HF_ENDPOINT": self.endpoint,
            "HF_HOME": str(cache),
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",
            "DO_NOT_TRACK": "1",
            "NO_PROXY": "127.0.0.1",
        }

    def find(self, kind: str, name: str) -> Repository | None:
        return self._repositories.get((kind, name))


@pytest.fixture
def loopback_hub() -> Iterator[LoopbackHub]:
    """A hub on 127.0.0.1, empty at first."""
    hub = LoopbackHub()
    hub.start()
    yield hub
    hub.stop()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_hub: LoopbackHub

    def log_message(self, *_: object) -> None:
        """Requests are kept in `hub.requests` instead of on stderr."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        address = urlsplit(self.path)
        parts = [unquote(part) for part in address.path.strip("/").split("/")]
        self.server_hub.requests.append(f"{self.command} {unquote(self.path)}")
        if self.server_hub.silent:
            self.server_hub._stopped.wait()
            return
        if parts[0] == _XET_TOKEN:
            self._xet_token()
        elif parts[0] == "api" and len(parts) > 1 and parts[1] in _KINDS:
            self._api(_KINDS[parts[1]], parts[2:], parse_qs(address.query), body)
        elif "resolve" in parts:
            kind = "model"
            if parts[0] == "datasets":
                kind, parts = "dataset", parts[1:]
            at = parts.index("resolve")
            self._file(kind, "/".join(parts[:at]), parts[at + 1], "/".join(parts[at + 2 :]))
        else:
            self._error(404, "EntryNotFound", f"nothing is served at {address.path}")

    def _api(self, kind: str, parts: list[str], query: dict[str, list[str]], body: bytes) -> None:
        verbs = ("revision", "tree", "paths-info")
        at = next((i for i, part in enumerate(parts) if part in verbs), len(parts))
        name, verb = "/".join(parts[:at]), parts[at] if at < len(parts) else "revision"
        revision = parts[at + 1] if at + 1 < len(parts) else "main"
        found = self._commit(kind, name, revision)
        if found is None:
            return
        repository, commit = found
        files = repository.files[commit]
        if verb == "tree":
            below = "/".join(parts[at + 2 :])
            recursive = query.get("recursive", ["false"])[0].lower() in ("true", "1")
            self._json(_tree(files, below, recursive=recursive))
        elif verb == "paths-info":
            fields = json.loads(body) if body.startswith(b"{") else parse_qs(body.decode())
            self._json(_paths_info(files, fields.get("paths", [])))
        else:
            sized = query.get("blobs", ["false"])[0].lower() in ("true", "1")
            self._json(_information(repository, commit, sized=sized))

    def _file(self, kind: str, name: str, revision: str, path: str) -> None:
        found = self._commit(kind, name, revision)
        if found is None:
            return
        repository, commit = found
        if repository.gated:
            self._error(403, "GatedRepo", f"Access to {kind} {name} is restricted.")
            return
        content = repository.files[commit].get(path)
        if content is None:
            self._error(404, "EntryNotFound", f"{path} does not exist in {name}", commit)
            return
        start, end, status = 0, len(content), 200
        asked = self.headers.get("Range", "")
        if asked.startswith("bytes="):
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start = int(first) if first else max(0, len(content) - int(last))
            end = min(len(content), int(last) + 1) if first and last else len(content)
            status = 206
        part = content[start:end]
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(content)}")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(part)))
        self.send_header("ETag", f'"{_object_id(content)}"')
        self.send_header("X-Repo-Commit", commit)
        if self.server_hub.xet_storage:
            self.send_header("X-Xet-Hash", hashlib.sha256(content).hexdigest())
            self.send_header("X-Xet-Refresh-Route", f"{self.server_hub.endpoint}/{_XET_TOKEN}")
        self.end_headers()
        if self.command == "HEAD":
            return
        cut = self.server_hub.cut_after
        if cut is not None and len(part) > cut:
            self.wfile.write(part[:cut])
            self.close_connection = True
            return
        self.wfile.write(part)

    def _xet_token(self) -> None:
        self.send_response(200)
        self.send_header("X-Xet-Cas-Url", self.server_hub.xet_storage)
        self.send_header("X-Xet-Access-Token", "token")
        self.send_header("X-Xet-Token-Expiration", str(int(time.time()) + 3600))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _commit(self, kind: str, name: str, revision: str) -> tuple[Repository, str] | None:
        repository = self.server_hub.find(kind, name)
        if repository is None:
            # The real hub does not tell a missing repository from a private one.
            self._error(401, "RepoNotFound", "Repository not found")
            return None
        commit = revision if revision in repository.files else repository.revisions.get(revision)
        if commit is None:
            self._error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
            return None
        return repository, commit

    def _json(self, value: object) -> None:
        content = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _error(self, status: int, code: str, message: str, commit: str = "") -> None:
        content = json.dumps({"error": message}).encode()
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("X-Error-Message", message)
        if commit:
            self.send_header("X-Repo-Commit", commit)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _object_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _entry(path: str, content: bytes) -> dict[str, object]:
    return {"type": "file", "path": path, "oid": _object_id(content), "size": len(content)}


def _folders(files: Mapping[str, bytes]) -> set[str]:
    return {
        parent.as_posix()
        for path in files
        for parent in Path(path).parents
        if parent.as_posix() != "."
    }


def _tree(files: Mapping[str, bytes], below: str, *, recursive: bool) -> list[dict[str, object]]:
    entries: list[dict[str, object]] = [
        {"type": "directory", "path": folder, "oid": _object_id(folder.encode()), "size": 0}
        for folder in sorted(_folders(files))
    ]
    entries += [_entry(path, content) for path, content in sorted(files.items())]
    prefix = f"{below}/" if below else ""
    inside = [entry for entry in entries if str(entry["path"]).startswith(prefix)]
    if recursive:
        return inside
    return [entry for entry in inside if "/" not in str(entry["path"])[len(prefix) :]]


def _paths_info(files: Mapping[str, bytes], paths: list[str]) -> list[dict[str, object]]:
    folders = _folders(files)
    found: list[dict[str, object]] = []
    for path in paths:
        if path in files:
            found.append(_entry(path, files[path]))
        elif path in folders:
            oid = _object_id(path.encode())
            found.append({"type": "directory", "path": path, "oid": oid, "size": 0})
    return found


def _information(repository: Repository, commit: str, *, sized: bool) -> dict[str, object]:
    siblings: list[dict[str, object]] = []
    for path, content in sorted(repository.files[commit].items()):
        siblings.append({"rfilename": path})
        if sized:
            siblings[-1] |= {"size": len(content), "blobId": _object_id(content)}
    return {
        "_id": commit[:24],
        "id": repository.name,
        ("modelId" if repository.kind == "model" else "name"): repository.name,
        "sha": commit,
        "private": False,
        "gated": "auto" if repository.gated else False,
        "disabled": False,
        "downloads": 0,
        "likes": 0,
        "tags": [],
        "lastModified": "2025-01-01T00:00:00.000Z",
        "createdAt": "2025-01-01T00:00:00.000Z",
        "siblings": siblings,
    }
