"""A tiny model of every family that transformers maps to a masked language model, on PyTorch.

Shapes are those of `tiny_models` where they fit; all of them read with BERT's tokenizer, as only
tokens matter to what is computed of them.
"""

from pathlib import Path
from typing import Any

from tiny_models import _AFTER_PAD, _SHAPE, _SHAPES, save_random_model
from tiny_tokenizers import TOKENIZERS

# Of one length, of several, and longer than what a layer reads at once (16 tokens of a Reformer).
TEXTS = (
    "The cat sat on the [MASK].",
    "[MASK] is so cold",
    "The [MASK] of France is a [MASK] on a river, and she walked to the café and then [MASK] and "
    "sat on the mat and looked at the birds and the [MASK].",
    "dog [MASK] was cold",
    "She walked to the café because the [MASK] was cold and the café and the river and the",
    "the museum [MASK] souvenirs",
)
# How each family reads a batch; all others let texts of any length share a call.
ONE_LENGTH = {
    *("convbert", "fnet", "funnel", "mobilebert", "nystromformer", "reformer", "yoso"),
}
REFUSED = {
    **dict.fromkeys(("bart", "mbart", "mvp"), "is not a masked language model: its config.json"),
    "mra": "is an MRA, whose attention is a CUDA kernel",
}

_SEQUENCE = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 64,
    "bos_token_id": 2,
    "eos_token_id": 3,
    "decoder_start_token_id": 3,
    "forced_eos_token_id": 3,
}
_XLM = {"emb_dim": 32, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 64, "pad_index": 0}
_VISION = {
    "model_type": "siglip_vision_model",
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "image_size": 32,
    "patch_size": 8,
}
_SPECIAL = {"cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3}
_LARGER = {**_SHAPE, "max_position_embeddings": 128}
_GROUPS = ("q", "k", "v", "post_attention", "intermediate", "output")
_OTHER_SHAPES: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("bart", "mbart", "mvp"), _SEQUENCE),
    **dict.fromkeys(("flaubert", "xlm"), _XLM),
    **dict.fromkeys(
        ("camembert", "data2vec-text", "ibert", "roberta-prelayernorm", "xlm-roberta-xl"),
        _AFTER_PAD,
    ),
    "big_bird": {**_LARGER, "block_size": 4},
    "convbert": {**_SHAPE, "embedding_size": 32},
    "esm": {**_SHAPES["esm"], "mask_token_id": 4},
    "funnel": {
        "block_sizes": [2, 2, 2],
        "num_decoder_layers": 2,
        "d_model": 32,
        "n_head": 4,
        "d_head": 8,
        "d_inner": 64,
    },
    "layoutlm": {**_SHAPE, "max_2d_position_embeddings": 16},
    "longformer": {**_AFTER_PAD, "attention_window": 4},
    "luke": {**_AFTER_PAD, "entity_vocab_size": 10, "entity_emb_size": 16},
    "mobilebert": {
        **_SHAPE,
        "embedding_size": 32,
        "intra_bottleneck_size": 32,
        "true_hidden_size": 32,
    },
    "modernvbert": {"text_config": {"model_type": "modernbert", **_SPECIAL}},
    "mra": _LARGER,
    "nystromformer": {**_SHAPE, "segment_means_seq_len": 8, "num_landmarks": 8},
    "perceiver": {
        "num_latents": 8,
        "d_latents": 32,
        "d_model": 32,
        "num_blocks": 1,
        "num_self_attends_per_block": 2,
        "num_self_attention_heads": 4,
        "num_cross_attention_heads": 4,
        "qk_channels": 32,
        "v_channels": 32,
        "max_position_embeddings": 64,
    },
    "reformer": {
        **_SHAPE,
        "attention_head_size": 8,
        "attn_layers": ["local", "local"],
        "local_attn_chunk_length": 16,
        "axial_pos_shape": [8, 8],
        "axial_pos_embds_dim": [16, 16],
        "feed_forward_size": 64,
    },
    "roc_bert": {
        **_SHAPE,
        "pronunciation_vocab_size": 20,
        "pronunciation_embed_dim": 16,
        "shape_vocab_size": 20,
        "shape_embed_dim": 16,
    },
    "squeezebert": {**_SHAPE, "embedding_size": 32} | {f"{group}_groups": 2 for group in _GROUPS},
    "ultravbert": {"text_config": {"model_type": "ultrabert"}},
    "xmod": {**_AFTER_PAD, "languages": ["en_XX"], "default_language": "en_XX"},
}


def make_family(family: str, folder: Path, **changes: Any) -> None:
    """Random weights and BERT's tokenizer; `changes` are their size and values of the config."""
    tokenizer = TOKENIZERS["bert"]()
    tokenizer.save_pretrained(folder)
    shape = _OTHER_SHAPES.get(family) or _SHAPES.get(family, _SHAPE)
    words = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    if "text_config" in shape:  # it also reads images
        text = {**_SHAPE, **words, **shape["text_config"]}
        save_random_model(family, folder, text_config=text, vision_config=_VISION)
    else:
        save_random_model(family, folder, **{**words, **shape, **changes})
