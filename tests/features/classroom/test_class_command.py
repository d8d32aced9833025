"""`runs`, `class`: classes among the stored runs."""

import json

from fillmask_ui.features.classroom.class_run import (
    ClassRound,
    ClassRun,
    ClassStore,
    RoundLosses,
    WordShare,
)


def test_a_class_among_the_runs(fillmask, tmp_path):
    words, rest = (
        (WordShare("tea", 0.5, 0.25), WordShare("=1+1", 0.25, 0.1)),
        WordShare("", 0.25, 0),
    )
    rounds = (ClassRound("a [MASK]", "", "tea", 3, words, rest, RoundLosses(0.75, 1.0, 1.5)),)
    store = ClassStore(tmp_path / "runs")
    name = store.save(ClassRun({"name": "table"}, "ABCD", "", rounds)).name
    (entry,) = map(json.loads, fillmask("runs", "list", "--json").stdout.splitlines())
    assert (entry["metric"], entry["rows"], entry["value"]) == ("class", 1, 0.75)
    assert name[:15] in fillmask("runs", "list").stdout
    exported = fillmask("runs", "export", name[:10]).stdout
    assert exported.splitlines()[2] == "1,a [MASK],tea,3,'=1+1,0,0.25,0.1,0.75,1.0,1.5"
    assert fillmask("runs", "export", name, "-o", tmp_path / "class.csv").returncode == 0
    assert (tmp_path / "class.csv").read_text() == exported
    (tmp_path / "runs" / name / "class.json").write_text("{")
    assert "class.json" in fillmask("runs", "list").stderr
    assert fillmask("runs", "delete", name, "--yes").stdout == f"deleted {name}\n"
    assert store.names() == []


def test_a_class_of_a_file_without_a_hidden_word(fillmask, tmp_path):
    path = tmp_path / "sentences.txt"
    path.write_text("A sentence.\n")
    result = fillmask("class", path)
    assert result.returncode == 2
    assert "line 1: no word is hidden" in result.stderr
