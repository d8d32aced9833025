"""A corpus of hostile inputs: each ends with its code and its words, and never with a traceback."""

import pytest
from cli.hostile.attempt import Attempt
from cli.hostile.environment import ATTEMPTS as ENVIRONMENT
from cli.hostile.models import ATTEMPTS as MODELS
from cli.hostile.outputs import ATTEMPTS as OUTPUTS
from cli.hostile.runs import ATTEMPTS as RUNS
from cli.hostile.texts import ATTEMPTS as TEXTS
from cli.hostile.training import ATTEMPTS as TRAINING

CORPUS = [*ENVIRONMENT, *MODELS, *OUTPUTS, *RUNS, *TEXTS, *TRAINING]


def test_every_attempt_has_a_name_of_its_own():
    assert len({attempt.name for attempt in CORPUS}) == len(CORPUS)


@pytest.mark.parametrize("attempt", CORPUS, ids=lambda attempt: attempt.name)
def test_a_hostile_input_ends_with_a_clear_message(
    attempt: Attempt, fillmask, tmp_path, tiny_models, monkeypatch
):
    model = tiny_models.folder("bert")
    names = {"model": model}
    attempt.make(tmp_path, model)
    for name, value in attempt.environment.items():
        monkeypatch.setenv(name, value.format(tmp_path, **names))
    arguments = [argument.format(tmp_path, **names) for argument in attempt.arguments]
    result = fillmask(*arguments, stdin=attempt.stdin)
    said = (result.stderr or result.stdout) if attempt.code else result.stdout
    assert result.returncode == attempt.code, said
    assert "Traceback" not in result.stderr
    assert "\x1b" not in result.stdout + result.stderr
    for word in attempt.words:
        assert word.lower() in said.lower()
    assert not (attempt.absent and (tmp_path / attempt.absent).exists())
