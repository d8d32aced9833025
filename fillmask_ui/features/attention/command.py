"""`fillmask-ui attention`: where each head looks from a mask, and from where it is looked at."""

from functools import partial

from fillmask_ui.cli.options import JSON, argument, option, with_options
from fillmask_ui.cli.terminal import load, print_json, print_line, print_table
from fillmask_ui.features.attention.mask_attention import (
    HeadAttention,
    MaskAttention,
    mask_attention,
)
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.show.numbers import percent
from fillmask_ui.show.table import Column, Table


@with_options
def attention(
    text: str = argument(..., "TEXT", "A sentence with [MASK], <mask> or ___."),
    *,
    model: ModelChoice,
    mask: int = option(1, "Number of the mask, from 1.", min=1),
    layer: int | None = option(None, "Only this layer, from 1.", metavar="N"),
    head: int | None = option(None, "Only this head, from 1.", metavar="N"),
    as_json: bool = JSON,
) -> None:
    """Show where each attention head looks from a mask, and from where it is looked at."""
    result = mask_attention(load(model), text, mask - 1)
    heads = result.heads(layer, head)
    if as_json:
        print_json(result.to_dict_of(heads))
        return
    print_line(result.encoding.text, "bold")
    if len(heads) == 1:
        _print_head(result, heads[0])
    else:
        _print_heads(result, heads)
    print_line(f"{result.signature}\n", "dim")


def _print_heads(result: MaskAttention, heads: list[HeadAttention]) -> None:
    """How peaked each head is at the mask, and where it looks most."""
    columns = ("layer", "head", Column("entropy (nats)", ".3f"), "looks most at")
    rows = [
        (head.layer, head.head, head.entropy_nats, _most(result.encoding.tokens, head.from_mask))
        for head in heads
    ]
    print_table(Table.of(columns, rows))


def _most(tokens: tuple[str, ...], weights: tuple[float, ...], count: int = 3) -> str:
    best = sorted(range(len(tokens)), key=lambda index: -weights[index])[:count]
    return "  ".join(f"{tokens[index]} {percent(weights[index])}" for index in best)


def _print_head(result: MaskAttention, head: HeadAttention) -> None:
    """One head token by token, both ways."""
    mask = result.encoding.tokens[result.position]
    share = partial(Column, form=percent, right=True)
    columns = ("position", "token", share(f"from {mask}"), share(f"to {mask}"))
    rows = zip(
        range(len(result.encoding)),
        result.encoding.tokens,
        head.from_mask,
        head.to_mask,
        strict=True,
    )
    print_line(f"Layer {head.layer}, head {head.head}: entropy {head.entropy_nats:.3f} nats")
    print_table(Table.of(columns, rows))
