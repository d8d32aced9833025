"""What is told while files come from the hub."""

from types import SimpleNamespace


def test_bytes_of_xet_downloads_count_once(monkeypatch, tmp_path):
    """Its client tells the bytes received and those written; both are of the same file."""
    from huggingface_hub import RepoFile, _snapshot_download, constants
    from huggingface_hub.utils._xet_progress_reporting import XetDownloadProgressReporter

    from fillmask_ui.models.hub_models import _download
    from fillmask_ui.models.model_choice import parse_reference

    sizes = {"model.safetensors": 1000, "config.json": 500}

    def listed(*_, **__):
        return [RepoFile(path=name, size=size, oid="") for name, size in sizes.items()]

    def fetch_file(_, filename, *, tqdm_class, **__):
        total = sizes[filename]
        if filename == "config.json":  # does not come by Xet
            with tqdm_class(total=total) as bar:
                bar.update(total)
            return
        with XetDownloadProgressReporter(
            reconstruction_desc="", total=total, log_level=0, tqdm_class=tqdm_class
        ) as reporter:
            for received, written in ((400, 0), (700, 600), (1020, 1000)):
                reporter.update_progress(
                    SimpleNamespace(
                        total_bytes=total,
                        total_bytes_completed=written,
                        total_bytes_completion_rate=None,
                        total_transfer_bytes_completed=received,
                        total_transfer_bytes_completion_rate=None,
                    )
                )

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(_snapshot_download.HfApi, "list_repo_tree", listed)
    monkeypatch.setattr(_snapshot_download, "hf_hub_download", fetch_file)
    steps = []
    begun = 0
    for name, size in sizes.items():
        _download(parse_reference("org/tiny"), "a" * 40, {name: size}, begun, steps.append)
        begun += size
    done = [step.done_bytes for step in steps]
    assert done == sorted(done)
    assert {400, 700, 1000} <= set(done)
    assert done[-1] == steps[-1].total_bytes == 1500
