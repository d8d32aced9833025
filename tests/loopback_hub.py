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
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

_LFS_FROM = 10_000  # bytes above which an upload goes by LFS
_XET_TOKEN = "xet-token"
Files = Mapping[str, bytes]


@dataclass
class Repository:
    kind: str  # `model` or `dataset`
    name: str  # `organisation/name`
    files: dict[str, Files] = field(default_factory=dict)  # of each commit
    revisions: dict[str, str] = field(default_factory=dict)  # branch or tag -> commit
    gated: bool = False  # whether files are refused
    private: bool = False  # as it was made


class LoopbackHub:
    def __init__(self) -> None:
        self._repositories: dict[tuple[str, str], Repository] = {}
        self.requests: list[str] = []  # `GET /path`
        self.cut_after: int | None = None  # bytes of a file after which the connection drops
        self.silent = False  # whether to take requests and answer none
        self.token = "hf_loopback"
        self.uploaded: dict[str, bytes] = {}  # by LFS, by SHA-256
        self.xet_storage = ""  # where clients fetch content, as the real hub's Xet; "": from here
        self.stopped = threading.Event()
        handler = type("Handler", (_Handler,), {"hub": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def stop(self) -> None:
        """Refuse connections from now on; more than once does no harm."""
        if not self.stopped.is_set():
            self.stopped.set()
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()

    def add(
        self,
        name: str,
        files: Files,
        *,
        kind: str = "model",
        revision: str = "main",
        gated: bool = False,
    ) -> str:
        """Publish files, by path, as a new commit that a branch or tag points to.

        Returns:
            The commit, 40 hexadecimal digits.
        """
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
        self, cache: Path, *arguments: object, stdin: str = "", **more: str
    ) -> subprocess.CompletedProcess[str]:
        """Python in a process of its own: this hub, an own cache, no telemetry, no credentials."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGING"))}
        off = ("HF_HUB_DISABLE_TELEMETRY", "HF_HUB_DISABLE_XET", "HF_HUB_DISABLE_IMPLICIT_TOKEN")
        settings = {"HF_ENDPOINT": self.endpoint, "HF_HOME": str(cache), "NO_PROXY": "127.0.0.1"}
        environment = inherited | dict.fromkeys((*off, "DO_NOT_TRACK"), "1") | settings | more
        command = [sys.executable, *map(str, arguments)]
        return subprocess.run(command, input=stdin, env=environment, capture_output=True, text=True)

    def find(self, kind: str, name: str) -> Repository | None:
        return self._repositories.get((kind, name))


@pytest.fixture
def loopback_hub() -> Iterator[LoopbackHub]:
    """A hub on 127.0.0.1, empty at first."""
    hub = LoopbackHub()
    yield hub
    hub.stop()


class _HubError(Exception):
    """A request that is answered with an error, whose code clients tell from others."""

    def __init__(self, status: int, code: str, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.headers = {"X-Error-Code": code, "X-Error-Message": message, **headers}


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
            return
        try:
            if self.command in ("POST", "PUT") and "paths-info" not in parts:
                self._send(200, self._write(parts, body))
            elif "resolve" in parts:
                self._file(parts)
            elif parts == [_XET_TOKEN]:
                self._send(200, b"", self._xet_token())
            else:
                self._send(200, self._describe(parts, parse_qs(address.query), body))
        except _HubError as refused:
            self._send(refused.status, {"error": str(refused)}, refused.headers)

    do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815 - as the server calls them

    def _xet_token(self) -> dict[str, str]:
        """Where content is fetched, and for how long one may."""
        names = ("Cas-Url", "Access-Token", "Token-Expiration")
        values = (self.hub.xet_storage, "token", str(int(time.time()) + 3600))
        return {f"X-Xet-{name}": value for name, value in zip(names, values, strict=True)}

    def _describe(self, parts: list[str], query: dict[str, list[str]], body: bytes) -> Any:
        """What the API says of a repository."""
        match parts:
            case ["api", "models" | "datasets" as kinds, owner, name, *rest]:
                verb, revision, *below = rest or ["revision", "main"]
                repository, commit = self._commit(kinds[:-1], f"{owner}/{name}", revision)
            case _:
                raise _HubError(404, "EntryNotFound", f"nothing is served at {self.path}")
        files = repository.files[commit]
        flags = {name for name, value in query.items() if value[0].lower() in ("true", "1")}
        if verb == "tree":
            return _tree(files, "/".join(below), recursive="recursive" in flags)
        if verb == "paths-info":
            fields = json.loads(body) if body.startswith(b"{") else parse_qs(body.decode())
            return [entry for entry in _tree(files) if entry["path"] in fields.get("paths", [])]
        return _information(repository, commit, sized="blobs" in flags)

    def _write(self, parts: list[str], body: bytes) -> Any:
        """The steps of an upload: repository, how each file travels, LFS objects, commit."""
        hub = self.hub
        if parts[0] == "lfs":
            hub.uploaded[parts[1]] = body
            return {}
        if self.headers.get("Authorization") != f"Bearer {hub.token}":
            raise _HubError(401, "", "Invalid username or password.")
        match parts:
            case ["api", "repos", "create"]:
                request = json.loads(body)
                name = f"{request['organization'] or 'me'}/{request['name']}"
                if not name.startswith("me/"):
                    raise _HubError(403, "", "You don't have the rights to create a model there")
                if hub.find("model", name) is None:
                    hub.add(name, {})
                    hub.find("model", name).private = request.get("visibility") == "private"
                return {"url": f"{hub.endpoint}/{name}"}
            case ["api", "models", _, _, "preupload", _]:
                files = json.loads(body)["files"]
                for file in files:
                    mode = "lfs" if file["size"] > _LFS_FROM else "regular"
                    file |= {"uploadMode": mode, "shouldIgnore": False}
                return {"files": files}
            case [*_, "objects", "batch"]:
                objects = json.loads(body)["objects"]
                for lfs_object in objects:
                    lfs_object["actions"] = {
                        "upload": {"href": f"{hub.endpoint}/lfs/{lfs_object['oid']}"}
                    }
                return {"objects": objects}
            case ["api", "models", owner, name, "commit", _]:
                repository, commit = self._commit("model", f"{owner}/{name}", "main")
                files = dict(repository.files[commit])
                for operation in map(json.loads, body.splitlines()):
                    value = operation["value"]
                    if operation["key"] == "file":
                        files[value["path"]] = base64.b64decode(value["content"])
                    elif operation["key"] == "lfsFile":
                        files[value["path"]] = hub.uploaded[value["oid"]]
                oid = hub.add(repository.name, files)
                where = f"{hub.endpoint}/{repository.name}/commit/{oid}"
                return {"commitOid": oid, "commitUrl": where}
        return {}

    def _file(self, parts: list[str]) -> None:
        kind = "dataset" if parts[0] == "datasets" else "model"
        owner, name, _, revision, *path = parts[kind == "dataset" :]
        repository, commit = self._commit(kind, f"{owner}/{name}", revision)
        if repository.gated:
            raise _HubError(403, "GatedRepo", f"Access to {kind} {repository.name} is restricted.")
        commit_header = {"X-Repo-Commit": commit}
        content = repository.files[commit].get("/".join(path))
        if content is None:
            raise _HubError(404, "EntryNotFound", f"{path} does not exist there", **commit_header)
        headers = {**commit_header, "Accept-Ranges": "bytes", "ETag": f'"{_object_id(content)}"'}
        if self.hub.xet_storage:
            headers["X-Xet-Hash"] = hashlib.sha256(content).hexdigest()
            headers["X-Xet-Refresh-Route"] = f"{self.hub.endpoint}/{_XET_TOKEN}"
        byte_range = self.headers.get("Range", "")
        if not byte_range.startswith("bytes="):
            self._send(200, content, headers)
            return
        first, _, last = byte_range.removeprefix("bytes=").partition("-")
        start = int(first) if first else max(0, len(content) - int(last))
        end = min(len(content), int(last) + 1) if first and last else len(content)
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(content)}"
        self._send(206, content[start:end], headers)

    def _commit(self, kind: str, name: str, revision: str) -> tuple[Repository, str]:
        repository = self.hub.find(kind, name)
        if repository is None:
            # The real hub does not tell a missing repository from a private one.
            raise _HubError(401, "RepoNotFound", "Repository not found")
        commit = revision if revision in repository.files else repository.revisions.get(revision)
        if commit is None:
            raise _HubError(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return repository, commit

    def _send(self, status: int, value: Any, headers: Mapping[str, str] | None = None) -> None:
        """Answer with the bytes of a file, which may be cut, or with a value as JSON."""
        is_file = isinstance(value, bytes)
        content = value if is_file else json.dumps(value).encode()
        cut = self.hub.cut_after if is_file else None
        self.send_response(status)
        kind = "application/octet-stream" if is_file else "application/json"
        length = {"Content-Type": kind, "Content-Length": str(len(content))}
        for name, value in {**(headers or {}), **length}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content[:cut])
            self.close_connection |= cut is not None and len(content) > cut


def _object_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _tree(files: Files, below: str = "", *, recursive: bool = True) -> list[dict[str, object]]:
    folders = {parent.as_posix() for path in files for parent in Path(path).parents} - {"."}
    entries = [(path, "directory", path.encode(), 0) for path in sorted(folders)]
    entries += [(path, "file", content, len(content)) for path, content in sorted(files.items())]
    prefix = f"{below}/" if below else ""
    return [
        {"type": kind, "path": path, "oid": _object_id(content), "size": size}
        for path, kind, content, size in entries
        if path.startswith(prefix) and (recursive or "/" not in path.removeprefix(prefix))
    ]


def _information(repository: Repository, commit: str, *, sized: bool) -> dict[str, object]:
    files = sorted(repository.files[commit].items())
    siblings = [{"rfilename": path} for path, _ in files]
    if sized:
        for sibling, (_, content) in zip(siblings, files, strict=True):
            sibling |= {"size": len(content), "blobId": _object_id(content)}
    name = repository.name
    key = "modelId" if repository.kind == "model" else "name"
    information = {"_id": commit[:24], "id": name, key: name, "sha": commit, "siblings": siblings}
    gated = "auto" if repository.gated else False
    return information | {"private": False, "gated": gated, "downloads": 0, "likes": 0, "tags": []}
