"""`unmask`, and its decodings on every family and runtime."""

import pytest
from tiny_models import EVERY_FAMILY

from fillmask_ui.features.unmask.decoding_history import read_history
from fillmask_ui.features.unmask.unmask_texts import finish, unmask_all
from fillmask_ui.features.unmask.unmasking_options import UnmaskingConfig

UNMASKED = ("The [MASK] [MASK] on the [MASK].", "[MASK] [MASK] [MASK] [MASK] [MASK]", "A [MASK].")
CONFIGS = (
    UnmaskingConfig(),
    UnmaskingConfig(order="entropy", threshold=0.9),
    UnmaskingConfig(temperature=1.0, top_p=0.9, seed=7, pieces="fitting", remask=1, max_steps=4),
)


@pytest.mark.parametrize("family", EVERY_FAMILY)
def test_unmasking_writes_the_same_on_both_runtimes_and_in_any_batch(family, loaded):
    onnx_model, torch_model = loaded(family, "onnx"), loaded(family, "torch")
    for config in CONFIGS:
        together = list(unmask_all(onnx_model, UNMASKED, config))
        for text, batched in zip(UNMASKED, together, strict=True):
            by_onnx, by_torch = finish(onnx_model, text, config), finish(torch_model, text, config)
            assert by_onnx.ids == by_torch.ids == batched.ids
            assert by_onnx.log_probability_nats == pytest.approx(
                by_torch.log_probability_nats, abs=1e-3
            )
            assert onnx_model.vocabulary.mask_id not in by_onnx.ids
            assert by_onnx.ids[by_onnx.start] not in onnx_model.vocabulary.special_ids


def test_steps_and_history_are_kept(fillmask, tmp_path):
    path = tmp_path / "h.jsonl"
    result = fillmask("unmask", "[MASK] [MASK] on the [MASK].", "--show-steps", "--history", path)
    history = read_history(path.read_text(encoding="utf-8").splitlines())
    assert history.text in result.stdout
    assert history.log_probability_nats < 0
    total = f"−{-history.log_probability_nats:.3f}"
    assert f"{history.steps_taken} steps; log-probability {total} nats" in result.stdout


def test_its_options_belong_to_its_metric(fillmask):
    refused = fillmask("eval", "--remask", "1")
    assert refused.returncode == 2
    assert "belong to unmasking" in refused.stderr
