"""Start from nothing: a tokenizer trained on the text, random weights for a config."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from fillmask_ui.errors import DataError, OptionError, first_line

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def train_tokenizer(
    paragraphs: list[str], vocabulary_size: int, max_tokens: int = 512
) -> PreTrainedTokenizerFast:
    """An uncased WordPiece tokenizer in BERT's form, trained on the text.

    The trainer breaks ties by the order of a hash map, so two trainings may differ in a few rare
    tokens: a run keeps its tokenizer and resumes with it.

    Args:
        paragraphs: the text.
        vocabulary_size: V, an upper limit: little text has fewer tokens to offer.
        max_tokens: longest text that the model will take.

    Raises:
        OptionError: for a vocabulary that leaves no room beside the special tokens.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from tokenizers.trainers import WordPieceTrainer
    from transformers import PreTrainedTokenizerFast

    if vocabulary_size < 100:
        raise OptionError(
            f"a vocabulary of {vocabulary_size} tokens is too small; take 100 or more"
        )
    tokenizer = Tokenizer(models.WordPiece(unk_token=SPECIAL[1]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = WordPieceTrainer(
        vocab_size=vocabulary_size, special_tokens=list(SPECIAL), show_progress=False
    )
    tokenizer.train_from_iterator(paragraphs, trainer)
    sep, cls = ((token, SPECIAL.index(token)) for token in ("[SEP]", "[CLS]"))
    tokenizer.post_processor = processors.BertProcessing(sep, cls)
    named = {f"{token.strip('[]').lower()}_token": token for token in SPECIAL}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=max_tokens, **named)


def new_model(
    config_path: Path, tokenizer: PreTrainedTokenizerFast, attention: str | None
) -> PreTrainedModel:
    """Random weights for a Hugging Face config; V and the special ids are the tokenizer's.

    Args:
        config_path: a JSON file.
        tokenizer: whose longest text becomes the model's.
        attention: implementation in transformers' terms; None leaves the choice to it.

    Raises:
        DataError: if the file is no JSON object.
        OptionError: if it names no architecture that has a masked-LM head.
    """
    from transformers import AutoConfig, AutoModelForMaskedLM

    try:
        content = json.loads(config_path.read_text(encoding="utf-8"))
        model_type = content.pop("model_type")
    except (OSError, ValueError, AttributeError) as error:
        raise DataError(f"{config_path} cannot be read as a JSON config: {error}") from error
    except KeyError as error:
        raise OptionError(
            f'{config_path} has no "model_type"; write one such as "bert" or "modernbert"'
        ) from error
    content |= {
        "vocab_size": len(tokenizer),
        "pad_token_id": tokenizer.pad_token_id,
        "cls_token_id": tokenizer.cls_token_id,
        "sep_token_id": tokenizer.sep_token_id,
        "bos_token_id": tokenizer.cls_token_id,
        "eos_token_id": tokenizer.sep_token_id,
    }
    try:
        config = AutoConfig.for_model(model_type, **content)
        model = AutoModelForMaskedLM.from_config(config, attn_implementation=attention)
    except (ValueError, TypeError, KeyError) as error:
        raise OptionError(
            f"no masked language model can be made from {config_path} "
            f"(model_type {model_type!r}): {first_line(error)}"
        ) from error
    limit = getattr(config, "max_position_embeddings", None)
    if isinstance(limit, int):
        tokenizer.model_max_length = limit
    return model.float()
