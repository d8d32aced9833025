"""A hub on 127.0.0.1 that speaks enough of the Hugging Face protocol for the real clients.

A pytest plugin: the fixture `loopback_hub` is a running server; `hub.add("org/name", files)`
publishes a repository, `hub.run(cache, ...)` starts Python with the variables under which
huggingface_hub and datasets talk to it and to nothing else (both read them when imported).

Served: repository information and file tree of a revision, information on paths, files by HEAD
and GET with ranges, for models and data sets; errors with the codes that clients tell apart. Who
has the token `hub.token` may also make repositories of models below `me/` and upload to them.
"""

import base64
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

_KINDS = {"models": "model", "datasets": "dataset"}
_LFS_FROM = 10_000  # bytes above which an upload goes by LFS
_XET_TOKEN = "xet-token"
Files = Mapping[str, bytes]


@dataclass
class Repository:
    """One published repository."""

    kind: str  # `model` or `dataset`
    name: str  # `organisation/name`
    files: dict[str, Files] = field(default_factory=dict)  # of each commit
    revisions: dict[str, str] = field(default_factory=dict)  # branch or tag -> commit
    gated: bool = False  # whether files are refused
    private: bool = False  # as it was made


class LoopbackHub:
    """The server."""

    def __init__(self) -> None:
        self._repositories: dict[tuple[str, str], Repository] = {}
        self.requests: list[str] = []  # `GET /path`
        self.cut_after: int | None = None  # bytes of a file after which the connection drops
        self.silent = False  # whether to take requests and answer none
        self.token = "hf_loopback"
        self.uploaded: dict[str, bytes] = {}  # by LFS, by SHA-256
        self.xet_storage = ""  # where clients fetch content, as the real hub's Xet; "": from here
        self.stopped = threading.Event()
        self._handler = type("Handler", (_Handler,), {"hub": self})
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
        self.stopped.clear()
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def stop(self) -> None:
        """Refuse connections from now on; more than once does no harm."""
        if self._running:
            self._running = False
            self.stopped.set()
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()

    def add(
        self,
        name: str,
        files: Files | Path,
        *,
        kind: str = "model",
        revision: str = "main",
        gated: bool = False,
    ) -> str:
        """Publish files, by path or of a folder, as a new commit that a branch or tag points to.

        Returns:
            The commit, 40 hexadecimal digits.
        """
        if isinstance(files, Path):
            paths = [path for path in files.rglob("*") if path.is_file()]
            files = {path.relative_to(files).as_posix(): path.read_bytes() for path in paths}
        repository = self._repositories.setdefault((kind, name), Repository(kind, name))
        repository.gated = gated
        digest = hashlib.sha1(f"{kind}/{name}".encode())
        for path, content in sorted(files.items()):
            digest.update(path.encode() + hashlib.sha1(content).digest())
        commit = digest.hexdigest()
        repository.files[commit] = dict(files)
        repository.revisions[revision] = commit
        return commit

    def run(
        self, cache: Path, *arguments: object, given: str = "", **more: str
    ) -> subprocess.CompletedProcess[str]:
        """Python in a process of its own: this hub, an own cache, no telemetry, no credentials."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGING"))}
        environment = {
            **kept,
            "HF_ENDPOINT": self.endpoint,
            "HF_HOME": str(cache),
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",
            "DO_NOT_TRACK": "1",
            "NO_PROXY": "127.0.0.1",
            **more,
        }
        command = [sys.executable, *map(str, arguments)]
        return subprocess.run(command, input=given, env=environment, capture_output=True, text=True)

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
    hub: LoopbackHub

    def log_message(self, *_: object) -> None:
        """Requests are kept in `hub.requests` instead of on stderr."""

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        address = urlsplit(self.path)
        parts = [unquote(part) for part in address.path.strip("/").split("/")]
        self.hub.requests.append(f"{self.command} {unquote(self.path)}")
        if self.hub.silent:
            self.hub.stopped.wait()
        elif parts[0] == _XET_TOKEN:
            expires = str(int(time.time()) + 3600)
            self._send(
                200,
                b"",
                Xet_Cas_Url=self.hub.xet_storage,
                Xet_Access_Token="token",
                Xet_Token_Expiration=expires,
            )
        elif self.command in ("POST", "PUT") and "paths-info" not in parts:
            if self.headers.get("Authorization") == f"Bearer {self.hub.token}" or parts[0] == "lfs":
                self._write(parts, body)
            else:
                self._error(401, "", "Invalid username or password.")
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

    do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815 - as the server calls them

    def _api(self, kind: str, parts: list[str], query: dict[str, list[str]], body: bytes) -> None:
        verbs = ("revision", "tree", "paths-info")
        at = next((i for i, part in enumerate(parts) if part in verbs), len(parts))
        name, verb = "/".join(parts[:at]), parts[at] if at < len(parts) else "revision"
        found = self._commit(kind, name, parts[at + 1] if at + 1 < len(parts) else "main")
        if found is None:
            return
        repository, commit = found
        files = repository.files[commit]
        value: object

        def asks(name: str) -> bool:
            return query.get(name, ["false"])[0].lower() in ("true", "1")

        if verb == "tree":
            value = _tree(files, "/".join(parts[at + 2 :]), recursive=asks("recursive"))
        elif verb == "paths-info":
            fields = json.loads(body) if body.startswith(b"{") else parse_qs(body.decode())
            known = {str(entry["path"]): entry for entry in _tree(files, "", recursive=True)}
            value = [known[path] for path in fields.get("paths", []) if path in known]
        else:
            value = _information(repository, commit, sized=asks("blobs"))
        self._send(200, json.dumps(value).encode(), "application/json")

    def _write(self, parts: list[str], body: bytes) -> None:
        """The steps of an upload: repository, how each file travels, LFS objects, commit."""
        hub, name = self.hub, "/".join(parts[2:4])
        value: dict[str, object] = {}
        if parts[0] == "lfs":
            hub.uploaded[parts[1]] = body
        elif parts[:3] == ["api", "repos", "create"]:
            asked = json.loads(body)
            name = f"{asked['organization'] or 'me'}/{asked['name']}"
            if not name.startswith("me/"):
                return self._error(403, "", "You don't have the rights to create a model there")
            if ("model", name) not in hub._repositories:
                hub.add(name, {})
                hub._repositories["model", name].private = asked.get("visibility") == "private"
            value = {"url": f"{hub.endpoint}/{name}"}
        elif "preupload" in parts:
            value["files"] = [
                {
                    "path": own["path"],
                    "uploadMode": "lfs" if own["size"] > _LFS_FROM else "regular",
                    "shouldIgnore": False,
                }
                for own in json.loads(body)["files"]
            ]
        elif parts[-2:] == ["objects", "batch"]:
            upload = f"{hub.endpoint}/lfs"
            value["objects"] = [
                {**own, "actions": {"upload": {"href": f"{upload}/{own['oid']}"}}}
                for own in json.loads(body)["objects"]
            ]
        elif "commit" in parts:
            repository = hub._repositories["model", name]
            files = dict(repository.files[repository.revisions["main"]])
            for line in body.splitlines():
                operation = json.loads(line)
                own = operation["value"]
                if operation["key"] == "file":
                    files[own["path"]] = base64.b64decode(own["content"])
                elif operation["key"] == "lfsFile":
                    files[own["path"]] = hub.uploaded[own["oid"]]
            oid = hub.add(name, files)
            value = {"commitOid": oid, "commitUrl": f"{hub.endpoint}/{name}/commit/{oid}"}
        self._send(200, json.dumps(value).encode(), "application/json")
        return None

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
        headers = {"Accept-Ranges": "bytes", "ETag": f'"{_object_id(content)}"'}
        asked = self.headers.get("Range", "")
        if asked.startswith("bytes="):
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start = int(first) if first else max(0, len(content) - int(last))
            end = min(len(content), int(last) + 1) if first and last else len(content)
            status = 206
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(content)}"
        if self.hub.xet_storage:
            headers["X-Xet-Hash"] = hashlib.sha256(content).hexdigest()
            headers["X-Xet-Refresh-Route"] = f"{self.hub.endpoint}/{_XET_TOKEN}"
        headers["X-Repo-Commit"] = commit
        self._send(
            status, content[start:end], "application/octet-stream", self.hub.cut_after, **headers
        )

    def _commit(self, kind: str, name: str, revision: str) -> tuple[Repository, str] | None:
        repository = self.hub.find(kind, name)
        if repository is None:
            # The real hub does not tell a missing repository from a private one.
            self._error(401, "RepoNotFound", "Repository not found")
            return None
        commit = revision if revision in repository.files else repository.revisions.get(revision)
        if commit is None:
            self._error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
            return None
        return repository, commit

    def _error(self, status: int, code: str, message: str, commit: str = "") -> None:
        headers = {"X-Error-Code": code, "X-Error-Message": message}
        if commit:
            headers["X-Repo-Commit"] = commit
        content = json.dumps({"error": message}).encode()
        self._send(status, content, "application/json", **headers)

    def _send(
        self,
        status: int,
        content: bytes,
        kind: str = "text/plain",
        cut: int | None = None,
        **headers: str,
    ) -> None:
        """A response; names of headers as they are, or `Xet_Cas_Url` for `X-Xet-Cas-Url`."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(f"X-{name.replace('_', '-')}" if "_" in name else name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content[:cut])
            self.close_connection |= cut is not None and len(content) > cut


def _object_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _tree(files: Files, below: str, *, recursive: bool) -> list[dict[str, object]]:
    folders = {parent.as_posix() for path in files for parent in Path(path).parents} - {"."}
    entries: list[dict[str, object]] = [
        {"type": "directory", "path": folder, "oid": _object_id(folder.encode()), "size": 0}
        for folder in sorted(folders)
    ]
    entries += [
        {"type": "file", "path": path, "oid": _object_id(content), "size": len(content)}
        for path, content in sorted(files.items())
    ]
    prefix = f"{below}/" if below else ""
    inside = [entry for entry in entries if str(entry["path"]).startswith(prefix)]
    if recursive:
        return inside
    return [entry for entry in inside if "/" not in str(entry["path"])[len(prefix) :]]


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
