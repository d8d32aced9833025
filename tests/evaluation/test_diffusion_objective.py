"""`--metric uniform` against the bound of LLaDA (arXiv:2502.09992) written out with PyTorch."""

import json

import numpy as np
import pytest
from stored_runs import record
from table_model import TableModel, sample_texts

from fillmask_ui.evaluation import EvaluationConfig, RunningSummary, evaluate, summarize
from fillmask_ui.intervals import ratio_interval
from fillmask_ui.runs import Run, compare
from fillmask_ui.show.sentences import change_text, story_text

UNIFORM = EvaluationConfig("uniform", seed=5)


def by_hand(rows, scores="scores"):
    """Weighted losses and lengths of the texts: float64 [N] each; two tokens are added to each."""
    torch = pytest.importorskip("torch")
    weighted, lengths = [], []
    for row in rows:
        ids, hidden = torch.tensor(row.ids), torch.zeros(len(row.ids), dtype=torch.bool)
        hidden[row.cols] = True
        length = len(ids) - 2
        each = torch.zeros(len(ids), dtype=torch.float64)
        each[hidden] = torch.tensor(getattr(row, scores).nll_nats)
        share = hidden.sum() / torch.tensor(length, dtype=torch.float64)
        weighted.append((each / share).sum().item())
        lengths.append(length)
    return np.array(weighted), np.array(lengths, float)


@pytest.fixture(scope="module")
def rows():
    models = TableModel(1), TableModel(1, noise=0.4)
    found = evaluate(models[0], sample_texts(60, seed=3), UNIFORM, baseline=models[1])
    return sorted(found, key=lambda row: row.id)


def test_the_figure_is_the_objective_and_the_plain_mean_stands_beside_it(rows):
    weighted, lengths = by_hand(rows)
    summary = summarize(rows, config=UNIFORM)
    values = summary.to_dict()
    assert values["diffusion_loss"] == pytest.approx(weighted.sum() / lengths.sum(), rel=1e-12)
    interval = ratio_interval(weighted, lengths)
    assert values["interval_95"] == pytest.approx([interval.low, interval.high], rel=1e-9)
    plain = np.concatenate([row.scores.nll_nats for row in rows])
    assert values["mean_nll_nats"] == pytest.approx(plain.mean(), rel=1e-12)
    assert abs(values["mean_nll_nats"] / values["diffusion_loss"] - 1) > 1e-3
    assert "cross_entropy" not in values


def test_two_models_are_judged_by_the_objective(rows):
    own, lengths = by_hand(rows)
    base, _ = by_hand(rows, "baseline")
    summary = summarize(rows, config=UNIFORM)
    pair = summary.comparison
    assert pair.relative_change == pytest.approx(own.sum() / base.sum() - 1, rel=1e-9)
    interval = ratio_interval(own - base, base)
    assert [pair.interval.low, pair.interval.high] == pytest.approx(
        [interval.low, interval.high], rel=1e-9
    )
    change = (own.sum() - base.sum()) / lengths.sum()
    told = story_text(summary, ("A", "B"))
    assert f"its loss of {own.sum() / lengths.sum():.3f} nats" in told
    assert f"{abs(change):.3f}" in told
    assert change_text(summary).startswith("diffusion loss changes by")


def test_shards_and_orders_give_the_same_figure(rows):
    shards = [RunningSummary(config=UNIFORM) for _ in range(3)]
    for index, row in enumerate(reversed(rows)):
        shards[index % 3].add(row)
    for shard in shards[1:]:
        shards[0].merge(shard)
    assert shards[0].summary().to_dict() == summarize(rows, config=UNIFORM).to_dict()


def test_rows_and_runs_of_before_give_the_same_figure(store):
    run = record(store, config=UNIFORM)
    wanted = run.summary().to_dict()
    rows, info = run.folder / "rows.jsonl", run.folder / "run.json"
    lines = [json.loads(line) for line in rows.read_text().splitlines()]
    for line in lines:
        if "ids" in line:
            assert line.pop("can_hide") == len(line["ids"]) - 2 - line["left_out"]
    rows.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    stored = json.loads(info.read_text())
    stored["result"]["cross_entropy"] = stored["result"]["mean_nll_nats"]
    stored["result"]["interval_95"] = stored["result"]["mean_nll_interval_95"]
    assert stored["result"].pop("diffusion_loss") == wanted["diffusion_loss"]
    info.write_text(json.dumps(stored))
    old = Run(run.folder)
    assert old.summary().to_dict() == wanted
    assert old.info.result == wanted  # as lists and sweeps show it without reading rows
    assert compare(old, run).comparison.relative_change == 0
