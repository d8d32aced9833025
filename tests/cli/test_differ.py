"""`fillmask-ui differ` as its user calls it."""

import pytest

from fillmask_ui.comparing import divergence_search

LINES = ["The dog barked all night.", "She drank a cup of tea.", "The sun rises in the morning."]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(LINES), encoding="utf-8")
    return path


def differ(fillmask, *arguments):
    pair = ("--model", "embedded:int8", "--baseline", "embedded")
    return fillmask("differ", *pair, *arguments)


def test_the_table_marks_the_hidden_word(fillmask, file):
    nats, bits = (differ(fillmask, "--dataset", file, *more) for more in ((), ("--bits",)))
    best = differ(fillmask, "--dataset", file, "--json").json["best"][0]
    start, end = best["start"], best["end"]
    assert f"{best['text'][:start]}[{best['word']}]{best['text'][end:]}" in nats.stdout
    assert f"{best['kl_nats']:.4f}" in nats.stdout
    assert "KL (bits)" in bits.stdout and "of 3 sentences (17 words hidden)" in bits.stdout


def test_stopped_it_shows_what_it_has_found(fillmask, file, monkeypatch):
    look, calls = divergence_search.look, []

    def interrupted(*arguments, **options):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return look(*arguments, **options)

    monkeypatch.setattr(divergence_search, "look", interrupted)
    result = differ(fillmask, "--dataset", file)
    assert result.returncode == 130
    assert "of 2 sentences" in result.stdout
    assert "stopped after 2 sentences" in result.stderr
