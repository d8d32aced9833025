"""Data sets of the hub: the real client against a hub on 127.0.0.1.

The client reads the hub's address when it is imported, so it runs in a process of its own.
"""

import io
import json

import pytest

# The client would wait 24 s before it gives a network up; it waits 5 s after a shuffled stream.
IMPATIENT = """
import json, sys, time
pause = time.sleep
def sleep(seconds):
    assert seconds < 1 or seconds == 5, seconds
    pause(0.5 if seconds == 5 else 0.02)
time.sleep = sleep
"""

CLIENT = f"""{IMPATIENT}
from fillmask_ui.texts import TextChoice, open_texts
from fillmask_ui.errors import FillmaskError
for reference, choices in json.loads(sys.argv[1]):
    try:
        texts = open_texts(TextChoice(reference, **choices).source())
        rows = [(example.id, example.text) for example in texts]
        answer = dict(rows=rows, available=texts.report.available, notes=texts.report.notes)
    except FillmaskError as error:
        answer = dict(error=type(error).__name__, message=str(error))
    print(json.dumps(answer))
"""

LIBRARY = f"""{IMPATIENT}
import datasets
datasets.disable_progress_bars()
for name, choices in json.loads(sys.argv[1]):
    rows = datasets.load_dataset(name, **choices)
    print(json.dumps([row["text"] for row in rows.shuffle(seed=42)]))
"""


def parquet(texts):
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = io.BytesIO()
    table = pa.table({"text": texts, "label": list(range(len(texts)))})
    pq.write_table(table, content, row_group_size=7)
    return content.getvalue()


def numbered(prefix, rows):
    return [f"{prefix} {row}" for row in range(rows)]


TWO_CONFIGS = b"""---
configs:
- config_name: small
  data_files:
  - split: test
    path: small/*.parquet
- config_name: large
  data_files:
  - split: test
    path: large/*.parquet
---
"""


@pytest.fixture
def hub(loopback_hub):
    files = {
        "README.md": b"# A data set\n",
        "data/test-00000-of-00001.parquet": parquet(numbered("test", 50)),
        "data/train-00000-of-00002.parquet": parquet(numbered("train a", 20)),
        "data/train-00001-of-00002.parquet": parquet(numbered("train b", 20)),
    }
    loopback_hub.add("org/plain", files, kind="dataset")
    older = {**files, "data/test-00000-of-00001.parquet": parquet(numbered("old", 4))}
    loopback_hub.add("org/plain", older, kind="dataset", revision="v1")
    configs = {
        "README.md": TWO_CONFIGS,
        "small/a.parquet": parquet(numbered("small", 5)),
        "large/a.parquet": parquet(numbered("large", 6)),
    }
    loopback_hub.add("org/configs", configs, kind="dataset")
    loopback_hub.add("org/gated", files, kind="dataset", gated=True)
    loopback_hub.add("org/bare", {"README.md": b"# Nothing\n"}, kind="dataset")
    return loopback_hub


@pytest.fixture
def run(hub, tmp_path):
    def run(code, *cases):
        # Streams would import torch, which takes seconds and changes nothing here.
        done = hub.run(tmp_path / "cache", "-c", code, json.dumps(cases), USE_TORCH="0")
        assert done.returncode == 0, done.stderr
        assert "it/s" not in done.stderr  # no progress bars outside a terminal
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


def test_the_order_is_the_librarys_and_ids_are_rows_of_the_split(run, tmp_path):
    theirs = run(
        LIBRARY,
        ("org/plain", {"split": "test"}),
        ("org/plain", {"split": "test", "streaming": True}),
        ("org/configs", {"name": "large", "split": "test"}),
    )
    folder, in_order = tmp_path / "mine", {"shuffle": False}
    folder.mkdir()
    (folder / "test.parquet").write_bytes(parquet(numbered("own", 8)))
    refused = {
        "unknown split of org/plain 'dev'; known: test, train": ("org/plain", {"split": "dev"}),
        "among the available configs: ['small', 'large'] (--dataset-name)": ("org/configs", {}),
        "is a gated dataset on the Hub": ("org/gated", {}),
        "'org/none' doesn't exist on the Hub or cannot be accessed": ("org/none", {}),
        "Revision 'v9' doesn't exist": ("org/plain", {"revision": "v9"}),
        "org/bare cannot be read as texts: ": ("org/bare", {}),
    }
    *answers, slice_, older, few, ninety, own_rows, none = run(
        CLIENT,
        *refused.values(),
        ("org/plain", {}),
        ("org/plain", {"streaming": True}),
        ("org/configs", {"dataset_name": "large"}),
        ("org/plain", {"split": "train[18:22]", **in_order}),
        ("org/plain", {"revision": "v1", **in_order}),
        ("org/plain", {"samples": 3}),
        ("org/plain", {"samples": 90}),
        (str(folder), in_order),
        (str(folder), {"split": "train"}),
    )
    errors, ours = answers[: len(refused)], answers[len(refused) :]
    for answer, texts in zip(ours, theirs, strict=True):
        assert [text for _, text in answer["rows"]] == texts
        assert answer["available"] == len(texts)
    for answer in ours[::2]:
        assert all(text.endswith(f" {position}") for position, text in answer["rows"])
    positions = [position for position, _ in ours[1]["rows"]]
    assert positions == list(range(len(positions)))  # a shuffled stream: the place in it
    assert [text for _, text in slice_["rows"]] == [
        f"train {row}" for row in ("a 18", "a 19", "b 0", "b 1")
    ]
    assert older["rows"] == [[row, f"old {row}"] for row in range(4)]
    assert few["rows"] == ninety["rows"][:3]
    assert (few["available"], few["notes"]) == (50, [])
    assert ninety["notes"] == ["90 texts were asked for; the data has 50"]
    assert own_rows["rows"] == [[row, f"own {row}"] for row in range(8)]
    assert none["message"] == f"unknown split of {folder} 'train'; known: test (--split)"
    for fragment, answer in zip(refused, errors, strict=True):
        assert fragment in answer["message"]
        assert answer["error"] in ("OptionError", "DataError")
        assert "\n" not in answer["message"]


def test_a_hub_that_does_not_answer_is_asked_once_and_what_is_stored_still_works(run, hub):
    """The client by itself asks six times, and waits for each answer."""
    (stored,) = run(CLIENT, ("org/plain", {}))
    hub.requests.clear()
    hub.silent = True
    requests = ("org/configs", {"dataset_name": "small"}), ("org/plain", {})
    missing, again = run(CLIENT, *requests)
    assert missing["error"] == "NetworkError"
    assert "cannot be fetched (the hub cannot be reached: timed out)" in missing["message"]
    assert again == stored
    assert [request.split("?")[0] for request in hub.requests] == [
        "GET /api/datasets/org/configs",
        "GET /api/datasets/org/plain",
    ]
    hub.stop()
    missing, again = run(CLIENT, *requests)
    assert "org/configs is not in the cache and cannot be fetched (" in missing["message"]
    assert "check the connection, or use the embedded texts" in missing["message"]
    assert again == stored
