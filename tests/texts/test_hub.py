"""Data sets of the hub: the real client against a hub on 127.0.0.1.

The client reads the hub's address when it is imported, so it runs in a process of its own.
"""

import io
import json
import subprocess
import sys

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
    empty = {"README.md": b"#\n", "test.csv": b"text,label\n"}
    loopback_hub.add("org/empty", empty, kind="dataset")
    return loopback_hub


@pytest.fixture
def run(hub, tmp_path):
    def run(code, *cases, environment=None):
        done = subprocess.run(
            [sys.executable, "-c", code, json.dumps(cases)],
            # Streams would import torch, which takes seconds and changes nothing here.
            env={**hub.environment(tmp_path / "cache"), "USE_TORCH": "0", **(environment or {})},
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stderr
        assert "it/s" not in done.stderr  # no progress bars outside a terminal
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


def test_the_order_is_the_librarys_and_ids_are_rows_of_the_split(run):
    theirs = run(
        LIBRARY,
        ("org/plain", {"split": "test"}),
        ("org/plain", {"split": "test", "streaming": True}),
        ("org/plain", {"split": "train", "streaming": True}),
        ("org/configs", {"name": "large", "split": "test"}),
    )
    ours = run(
        CLIENT,
        ("org/plain", {}),
        ("org/plain", {"streaming": True}),
        ("org/plain", {"streaming": True, "split": "train"}),
        ("org/configs", {"dataset_name": "large"}),
    )
    for answer, texts in zip(ours, theirs, strict=True):
        assert [text for _, text in answer["rows"]] == texts
        assert answer["available"] == len(texts)
    for answer in (ours[0], ours[3]):
        assert all(text.endswith(f" {position}") for position, text in answer["rows"])
    for answer in ours[1:3]:  # a shuffled stream: the id is the place in it
        positions = [position for position, _ in answer["rows"]]
        assert positions == list(range(len(positions)))


def test_splits_revisions_columns_and_samples(run):
    in_order = {"shuffle": False}
    slice_, older, both, few, many, streamed = run(
        CLIENT,
        ("org/plain", {"split": "train[18:22]", **in_order}),
        ("org/plain", {"revision": "v1", **in_order}),
        ("org/plain", {"split": "test+train", "column": "text", **in_order}),
        ("org/plain", {"samples": 3}),
        ("org/plain", {"samples": 90}),
        ("org/plain", {"samples": 90, "streaming": True, **in_order}),
    )
    assert [text for _, text in slice_["rows"]] == [
        f"train {row}" for row in ("a 18", "a 19", "b 0", "b 1")
    ]
    assert older["rows"] == [[row, f"old {row}"] for row in range(4)]
    assert len(both["rows"]) == 90
    assert few["rows"] == many["rows"][:3]
    assert (few["available"], few["notes"]) == (50, [])
    for answer in (many, streamed):
        assert answer["notes"] == ["90 texts were asked for; the data has 50"]
    assert streamed["rows"] == [[row, f"test {row}"] for row in range(50)]


def test_what_is_not_there_is_said_with_what_is(run):
    cases = {
        "unknown split of org/plain 'dev'; known: test, train": ("org/plain", {"split": "dev"}),
        "Available: ['small', 'large'] (--dataset-name)": (
            "org/configs",
            {"dataset_name": "tiny"},
        ),
        "among the available configs: ['small', 'large'] (--dataset-name)": ("org/configs", {}),
        "is a gated dataset on the Hub": ("org/gated", {}),
        "'org/none' doesn't exist on the Hub or cannot be accessed": ("org/none", {}),
        "Revision 'v9' doesn't exist": ("org/plain", {"revision": "v9"}),
        "no column 'body'; it has 'text', 'label'": ("org/plain", {"column": "body"}),
        "column 'label' holds int": ("org/plain", {"column": "label"}),
        "org/bare cannot be read as texts: ": ("org/bare", {}),
    }
    answers = run(CLIENT, *cases.values())
    for said, answer in zip(cases, answers, strict=True):
        assert said in answer["message"]
        assert answer["error"] in ("OptionError", "DataError")
        assert "\n" not in answer["message"]


def test_no_network_is_said_and_what_is_stored_still_works(run, hub):
    (stored,) = run(CLIENT, ("org/plain", {}))
    (offline,) = run(CLIENT, ("org/none", {}), environment={"HF_HUB_OFFLINE": "1"})
    assert offline["error"] == "NetworkError"
    hub.stop()
    missing, again = run(CLIENT, ("org/configs", {"dataset_name": "small"}), ("org/plain", {}))
    assert missing["error"] == "NetworkError"
    assert "org/configs is not in the cache and cannot be fetched (" in missing["message"]
    assert "check the connection, or use the embedded texts" in missing["message"]
    assert again == stored


def test_a_hub_that_does_not_answer_is_asked_once(run, hub):
    """The client by itself asks six times, and waits for each answer."""
    (stored,) = run(CLIENT, ("org/plain", {}))
    hub.requests.clear()
    hub.silent = True
    missing, again = run(CLIENT, ("org/configs", {"dataset_name": "small"}), ("org/plain", {}))
    assert "cannot be fetched (the hub cannot be reached: timed out)" in missing["message"]
    assert again == stored
    assert [request.split("?")[0] for request in hub.requests] == [
        "GET /api/datasets/org/configs",
        "GET /api/datasets/org/plain",
    ]


def test_a_folder_is_a_data_set_too(run, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "test.parquet").write_bytes(parquet(numbered("own", 8)))
    other = tmp_path / "other"
    other.mkdir()
    (other / "train.txt").write_text("one\ntwo\n")
    cases = ((str(folder), {}), (str(other), {"split": "train"}), (str(other), {}))
    own, train, none = run(CLIENT, *((path, {**c, "shuffle": False}) for path, c in cases))
    assert own["rows"] == [[row, f"own {row}"] for row in range(8)]
    assert train["rows"] == [[0, "one"], [1, "two"]]
    assert none["message"] == f"unknown split of {other} 'test'; known: train (--split)"
