"""What is written or trimmed reads as before: tokenizers, and numbers that no file holds."""

import json
import shutil

import numpy as np
import pytest
import torch

from fillmask_ui.errors import OptionError
from fillmask_ui.features.train.torch_weights import (
    choose_tokens,
    load_weights,
    new_model,
    train_tokenizer,
    trim,
    write_tokenizer,
    write_weights,
)


@pytest.fixture
def tokenizer_of(tmp_path, sentences):
    """A tiny tokenizer of a family as AutoTokenizer loads it, and the config of its model."""
    from tokenizers import ByteLevelBPETokenizer
    from transformers import AutoTokenizer

    def make(family, **options):
        folder = tmp_path / "family"
        folder.mkdir()
        if family == "Bert":
            letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZäöüéÄ"
            tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *letters]
            tokens += [*(f"##{c}" for c in letters), "Paris", "paris", "schön", "schon", "unused"]
            (folder / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
        else:
            bpe = ByteLevelBPETokenizer(add_prefix_space=options.get("add_prefix_space", False))
            special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
            bpe.train_from_iterator(sentences, 300, special_tokens=special)
            bpe.save_model(str(folder))
        config = {"tokenizer_class": f"{family}Tokenizer", **options}
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
        (folder / "config.json").write_text(json.dumps({"model_type": family.lower()}))
        return AutoTokenizer.from_pretrained(folder), folder / "config.json"

    return make


@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("Bert", {"do_lower_case": False}),
        ("Bert", {"do_lower_case": True, "strip_accents": False}),
        ("Roberta", {"add_prefix_space": True}),
    ],
)
def test_a_packaged_or_trimmed_tokenizer_reads_as_before(
    tokenizer_of, tmp_path, config_file, family, options
):
    from transformers import AutoTokenizer

    tokenizer, config = tokenizer_of(family, **options)
    folder = tmp_path / "packaged"
    folder.mkdir()
    shutil.copy(config, folder)
    write_tokenizer(tokenizer, folder)
    packaged = AutoTokenizer.from_pretrained(folder)
    mask = tokenizer.mask_token
    for text in ("The schön Paris.", f"the cat {mask} the house.", f"{mask}.{mask} ", ""):
        assert dict(packaged(text)) == dict(tokenizer(text))
        assert dict(packaged(text, "a dog")) == dict(tokenizer(text, "a dog"))
    assert packaged.all_special_ids == tokenizer.all_special_ids
    text = "The schön Paris [MASK] Zug."
    ids = np.array(tokenizer(text)["input_ids"])
    model = new_model(config_file(), tokenizer)
    if family == "Roberta":
        with pytest.raises(OptionError, match="can only trim WordPiece vocabularies, this is BPE"):
            trim(model, tokenizer, ids, len(tokenizer) - 1)
        return
    trimmed = trim(model, tokenizer, ids, len(tokenizer) - 1)
    trimmed.save_pretrained(tmp_path / "saved")
    shutil.copy(config, tmp_path / "saved")
    for one in (trimmed, AutoTokenizer.from_pretrained(tmp_path / "saved")):
        assert one.tokenize(text) == tokenizer.tokenize(text)
        assert list(one(text)) == list(tokenizer(text))


def test_rounding_leaves_what_no_file_holds(tmp_path, tokenizer, config_file):
    """The frequencies of rotary positions: rounded to half precision they err with the place."""
    config = config_file("modernbert", max_position_embeddings=512, hidden_size=64)
    torch.manual_seed(0)
    model = new_model(config, tokenizer).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.normal_(0, 0.3)
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    assert before
    write_tokenizer(tokenizer, tmp_path)
    write_weights(model, tmp_path)
    for name, buffer in model.named_buffers():
        assert torch.equal(buffer, before[name])
    # The graph is exported of the model in memory, the file is what PyTorch loads.
    stored = load_weights(tmp_path).model.eval()
    ids = torch.randint(5, len(tokenizer), (1, 500))
    with torch.no_grad():
        assert torch.equal(model(input_ids=ids).logits, stored(input_ids=ids).logits)


@pytest.mark.parametrize(
    ("family", "tied"), [("bert", True), ("distilbert", False), ("deberta-v2", True)]
)
def test_tokens_that_stay_score_as_before(sentences, config_file, family, tied):
    """Reference: the logits of the model in full, whether or not it shares its two matrices."""
    tokenizer = train_tokenizer(sentences, 200)
    torch.manual_seed(0)
    model = new_model(config_file(family, tie_word_embeddings=tied), tokenizer).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    text = sentences[0]
    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    before, old = model(input_ids=ids).logits[0], tokenizer.get_vocab()
    trimmed = trim(model, tokenizer, ids[0].numpy(), len(tokenizer) - 20)
    new = trimmed.get_vocab()
    rows = [old[token] for token in sorted(new, key=new.get)]
    after = model(input_ids=trimmed(text, return_tensors="pt")["input_ids"]).logits[0]
    torch.testing.assert_close(after, before[:, rows])


def test_chosen_tokens_are_special_single_frequent_and_early():
    tokens = ["[PAD]", "[unused0]", "[MASK]", "a", "##b", "π", "日", "the", "of", "cat", "##ing"]
    counts = np.array([0, 0, 0, 5, 5, 0, 9, 50, 40, 30, 0])
    picked = [tokens[i] for i in choose_tokens(tokens, {"[PAD]", "[MASK]"}, counts, 7)]
    assert picked == ["[PAD]", "[MASK]", "a", "##b", "π", "the", "of"]
    with pytest.raises(OptionError, match="between 5 and 11"):
        choose_tokens(tokens, {"[PAD]", "[MASK]"}, counts, 4)
