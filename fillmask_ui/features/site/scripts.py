"""What a browser needs to run a model: npm's packages and the page's own scripts, made small.

`package-lock.json` pins the packages, and npm checks what it fetches against it. A wheel brings
them along; a clone asks npm once and keeps them in the user's cache. Imports the standard library
alone, as the build of the wheel runs it too.
"""

import hashlib
import io
import lzma
import shutil
import subprocess
import tarfile
import tempfile
from contextlib import suppress
from pathlib import Path

HERE = Path(__file__).parent
PACKED = HERE / "packed.tar.xz"  # of a wheel, or made beforehand; git ignores it
_LOCK = ("package.json", "package-lock.json")
# Name of a file of the page -> what npm installed.
_LIBRARIES = {
    "ort.mjs": "onnxruntime-web/dist/ort.wasm.bundle.min.mjs",
    "ort.wasm": "onnxruntime-web/dist/ort-wasm-simd-threaded.wasm",
    "tokenizers.mjs": "@huggingface/tokenizers/dist/tokenizers.min.mjs",
    "minijinja.js": "minijinja-js/dist/web/minijinja_js.js",
    "minijinja.wasm": "minijinja-js/dist/web/minijinja_js_bg.wasm",
}
_TERSER = "terser/bin/terser"
# What the page shares with the one of a server, in the order in which it runs, then its own.
_SHARED = (
    "static/page",
    "static/explain",
    *(f"explore/{name}" for name in ("explore", "fits", "modes")),
)
_UI = HERE.parent.parent / "ui"
_PAGE = (
    *(_UI / f"{name}.js" for name in (*_SHARED, "explore/loss", "explore/guess")),
    HERE / "site.js",
)
_OWN = ("draft", "filling", "formats", "guesses", "model", "views", "vocabulary", "worker", "sw")


class NpmError(Exception):
    """The packages cannot be had; its message says why."""


def read_pack(cache: Path) -> dict[str, bytes]:
    """The files by name, of a wheel, of the cache, or made now; an `NpmError` without npm."""
    cached = cache / "site" / f"{_key()}.tar.xz"
    for path in (PACKED, cached):
        if path.is_file() and (files := _unpacked(path.read_bytes())) is not None:
            return files
    pack = make_pack()
    with suppress(OSError):  # a cache that cannot be written is none
        cached.parent.mkdir(parents=True, exist_ok=True)
        cached.write_bytes(pack)
    return _unpacked(pack) or {}


def make_pack() -> bytes:
    """The files as one archive, by npm."""
    if (npm := shutil.which("npm")) is None:
        raise NpmError("npm is not installed, and its packages run the model in a browser")
    with tempfile.TemporaryDirectory() as folder:
        root, packages = Path(folder), HERE / "node_modules"
        if not packages.is_dir():
            for name in _LOCK:
                shutil.copyfile(HERE / name, root / name)
            _run(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=root)
            packages = root / "node_modules"
        files = {name: (packages / path).read_bytes() for name, path in _LIBRARIES.items()}
        page = "\n".join(path.read_text("utf-8") for path in _PAGE)
        scripts = {"page.js": page} | {
            f"{n}.js": (HERE / f"{n}.js").read_text("utf-8") for n in _OWN
        }
        for name, text in scripts.items():
            (root / name).write_text(text, encoding="utf-8")
            kind = ["--module"] if name not in ("page.js", "sw.js") else []
            small = _run("node", str(packages / _TERSER), name, *kind, "-c", "-m", cwd=root)
            files[name] = small.encode()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in {"key": _key().encode(), **files}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return lzma.compress(out.getvalue(), preset=9)


def _run(*command: str, cwd: Path) -> str:
    process = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, encoding="utf-8", check=False
    )
    if process.returncode:
        lines = [line for line in process.stderr.splitlines() if line.strip()]
        raise NpmError(f"npm failed: {lines[0] if lines else 'without a word'}")
    return process.stdout


def _unpacked(archive: bytes) -> dict[str, bytes] | None:
    """The files; None for those of other scripts or packages, or half an archive."""
    try:
        with tarfile.open(fileobj=io.BytesIO(lzma.decompress(archive))) as opened:
            members = [(member.name, opened.extractfile(member)) for member in opened.getmembers()]
            files = {name: file.read() for name, file in members if file is not None}
    except (lzma.LZMAError, EOFError, tarfile.TarError):
        return None
    return files if files.pop("key", b"").decode() == _key() else None


def _key() -> str:
    names = (*_LOCK, *(f"{name}.js" for name in _OWN), "scripts.py")
    paths = [*(HERE / name for name in names), *_PAGE]
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()[:16]


def ensure_packed() -> None:
    """Put the files where a wheel has them, unless they are there."""
    if not PACKED.is_file() or _unpacked(PACKED.read_bytes()) is None:
        PACKED.write_bytes(make_pack())
