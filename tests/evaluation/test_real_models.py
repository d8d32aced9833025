"""Evaluation of real tiny models against loops that use transformers and torch alone."""

import numpy as np
import pytest
import torch
from tiny_models import SENTENCES, reference_model, reference_tokenizer
from torch.nn.functional import cross_entropy

from fillmask_ui.evaluation import EvaluationConfig, evaluate, summarize
from fillmask_ui.models import load_model
from fillmask_ui.runs.collator_masks import CollatorMasks

FAMILIES = ("bert", "roberta", "xlm-roberta")
TEXTS = [*SENTENCES, "  ", "Two words.", "cafés — the café's, 1,234!", " ".join(SENTENCES)]


@pytest.fixture(scope="module", params=FAMILIES)
def family(request, tiny_models):
    """(our model on ONNX Runtime, transformers' tokenizer and model) of one family."""
    folder = tiny_models.folder(request.param)
    return load_model(folder), reference_tokenizer(folder), reference_model(folder)


def test_the_published_evaluator_to_five_digits(family):
    """winml-cli's loop, written again: a batch of one, the collator, torch's cross_entropy."""
    from transformers import DataCollatorForLanguageModeling

    ours, tokenizer, model = family
    collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15, seed=42)
    total, count = 0.0, 0
    for text in TEXTS:
        if not text.strip():
            continue
        encoded = tokenizer(text, truncation=True, max_length=ours.max_tokens)
        batch = collator([torch.tensor(encoded["input_ids"])])
        with torch.no_grad():
            logits = model(input_ids=batch["input_ids"]).logits[0]
        labels = batch["labels"][0]
        total += cross_entropy(logits, labels, ignore_index=-100, reduction="sum").item()
        count += int((labels != -100).sum())

    config = EvaluationConfig(mask_stream="collator").resolved(ours.max_tokens)
    masks = CollatorMasks(ours.vocabulary, config)
    summary = summarize(evaluate(ours, TEXTS, config, masks=masks))
    assert summary.model.tokens == count > 20
    assert summary.model.mean_nll_nats == pytest.approx(total / count, abs=1e-5)


def test_pseudo_perplexity_equals_one_forward_pass_a_token(family):
    """Salazar et al. 2020, written again: each token hidden alone, full logits, a batch of one."""
    ours, tokenizer, model = family
    texts = TEXTS[:4]
    losses = []
    for text in texts:
        ids = torch.tensor(tokenizer(text)["input_ids"])
        for position in range(len(ids)):
            if ids[position].item() in tokenizer.all_special_ids:
                continue
            seen = ids.clone()
            seen[position] = tokenizer.mask_token_id
            with torch.no_grad():
                logits = model(input_ids=seen[None]).logits[0, position]
            losses.append(cross_entropy(logits, ids[position]).item())
    config = EvaluationConfig("pseudo-perplexity")
    summary = summarize(evaluate(ours, texts, config), config=config)
    assert summary.model.tokens == len(losses)
    assert summary.model.mean_nll_nats == pytest.approx(np.mean(losses), abs=1e-5)
    assert summary.model.perplexity == pytest.approx(np.exp(np.mean(losses)), rel=1e-5)
