"""`site`: the page without a server."""

import json

import pytest
from typer.testing import CliRunner

from fillmask_ui.cli.main import app
from fillmask_ui.features.site import build as site_build
from fillmask_ui.features.site import scripts


@pytest.fixture
def site(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        return CliRunner().invoke(app, ["site", *arguments])

    return call


def test_a_frozen_page_is_one_file(site, tmp_path):
    (tmp_path / "sentences.txt").write_text("Paris is in [MASK].\n\nSnow is white.\n")
    assert "1 files" in site("out", "--frozen", "sentences.txt", "--title", "Two <b>").stdout
    (page,) = (tmp_path / "out").iterdir()
    assert "<title>Two &lt;b&gt;</title>" in page.read_text("utf-8")


def test_the_page_comes_with_the_licences_of_what_it_bundles(site, monkeypatch, tmp_path):
    """Those of the three packages of npm, in the versions that are packed."""
    monkeypatch.setattr(site_build, "build", lambda *_: {"index.html": b"page"})
    assert "3 files" in site("out").stdout
    notice = (tmp_path / "out" / "NOTICE").read_text("utf-8")
    package = json.loads((scripts.HERE / "package.json").read_bytes())
    for name, version in package["dependencies"].items():
        assert name == "terser" or f"{name} {version}" in notice  # which only packs them
    assert "Permission is hereby granted" in notice
    assert "Apache License" in (tmp_path / "out" / "LICENSE").read_text("utf-8")


def test_without_npm_a_clone_says_what_is_missing(site, monkeypatch, tmp_path):
    monkeypatch.setattr(scripts, "PACKED", tmp_path / "none")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("FILLMASK_UI_CACHE", str(tmp_path / "cache"))
    assert "npm is not installed" in str(site("out").exception)


def test_a_model_of_pytorch_has_to_be_exported_first(site, tiny_models):
    result = site("out", "-m", str(tiny_models.without_onnx("bert")))
    assert "a browser runs ONNX: write it as that first" in str(result.exception)
