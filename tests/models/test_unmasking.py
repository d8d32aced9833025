"""Unmasking on real models: the same on both runtimes, alone and in a batch."""

import pytest
from tiny_models import FAMILIES

from fillmask_ui.unmasking import UnmaskingConfig, finish, unmask_all

TEXTS = ("The [MASK] [MASK] on the [MASK].", "[MASK] [MASK] [MASK] [MASK] [MASK]", "A [MASK].")
CONFIGS = (
    UnmaskingConfig(),
    UnmaskingConfig(order="entropy", threshold=0.9),
    UnmaskingConfig(temperature=1.0, top_p=0.9, seed=7, pieces="fitting", remask=1, max_steps=4),
)


@pytest.mark.parametrize("family", FAMILIES)
def test_both_runtimes_and_any_batch_write_the_same(family, loaded):
    onnx, torch = (loaded(family, runtime) for runtime in ("onnx", "torch"))
    for config in CONFIGS:
        together = list(unmask_all(onnx, TEXTS, config))
        for text, batched in zip(TEXTS, together, strict=True):
            own, other = finish(onnx, text, config), finish(torch, text, config)
            assert own.ids == other.ids == batched.ids
            assert own.log_probability_nats == pytest.approx(other.log_probability_nats, abs=1e-3)
            assert onnx.vocabulary.mask_id not in own.ids
            assert own.ids[own.start] not in onnx.vocabulary.special_ids
