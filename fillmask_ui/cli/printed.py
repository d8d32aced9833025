"""What the commands on single texts print: tables of words, of joint fillings and of steps.

A `unit` is nats or bits.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from fillmask_ui.cli.terminal import print_line, print_table
from fillmask_ui.comparing import Comparison
from fillmask_ui.comparing.divergence_search import Divergence, Search
from fillmask_ui.comparing.word_contrast import SentenceComparison
from fillmask_ui.filling.logit_lens import LogitLens
from fillmask_ui.filling.word_surprisal import SentenceSurprisal
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import ROLES, Filling
from fillmask_ui.show.numbers import in_unit, is_zero, loss_form, percent, signed
from fillmask_ui.show.table import Column, Table
from fillmask_ui.show.words import compared_name, first_words, mark, points, rank_change


def _losses(unit: str) -> list[Column]:
    heads = (f"{role} NLL ({unit})" for role in ROLES)
    return [Column(head, loss_form(unit), missing="-", right=True) for head in heads]


def _said(own: Any) -> str:
    return f"{own.word} {percent(own.probability)}"


def _parts(own: Any, between: str, unit: str) -> str:
    loss = loss_form(unit, 3)
    return between.join(f"{part.token} {loss(part.nll_nats)}" for part in own.parts)


def _sign(models: Iterable[Any]) -> None:
    for role, model in zip(ROLES, models, strict=True):
        print_line(f"{role.capitalize()}: {model.signature}", "dim")


def _mask_name(number: int, masks: Sequence[Any]) -> str:
    return f"Mask {number} of {len(masks)}" if len(masks) > 1 else "Mask"


def print_filling(filling: Filling, unit: str) -> None:
    """The words at each mask of a text, and the joint fillings."""
    loss, brief = loss_form(unit), loss_form(unit, 3)
    chance = Column("probability", percent), Column(f"NLL ({unit})", loss)
    heads = "rank", "word", "token", Column("id", ""), *chance
    scored = "word", Column("rank", missing="-"), *chance, "sub-tokens"
    best = attrgetter("rank", "word", "token", "token_id", "probability", "nll_nats")
    print_line(filling.encoding.text, "bold")
    for number, mask in enumerate(filling.masks, start=1):
        print_line(
            f"\n{_mask_name(number, filling.masks)} at position {mask.position}: "
            f"entropy {brief(mask.entropy_nats)} {unit}, perplexity {mask.perplexity:,.1f}"
        )
        print_table(Table.of(heads, map(best, mask.candidates)))
        if mask.scored:
            rows = [
                (own.word, own.rank, own.probability, own.nll_nats, _parts(own, "  ", unit))
                for own in mask.scored
            ]
            print_table(Table.of(scored, rows, "Your candidates"))
    if filling.joint:
        together = [
            (own.text, own.probability, own.nll_nats, _parts(own, " + ", unit))
            for own in filling.joint
        ]
        columns = "text", *chance, "each given those before it"
        print_line("")
        print_table(Table.of(columns, together, "All masks together"))
    print_line(f"\n{filling.signature}\n", "dim")


def print_comparison(found: Comparison, unit: str, models: Sequence[MaskedLM]) -> None:
    """The words that two models expect at each mask of a text."""
    first, second = models
    name = partial(compared_name, first=first.vocabulary, second=second.vocabulary)
    loss = loss_form(unit)
    columns: tuple[str | Column, ...] = (
        "word",
        *(Column(role, percent, missing="-") for role in ROLES),
        *(Column(head, right=True) for head in ("difference, points", "rank", "change")),
        "",
    )
    print_line(found.reference.encoding.text, "bold")
    print_line(f"Reference: {first.signature.name}, candidate: {second.signature.name}")
    for note in found.notes:
        print_line(f"{note[:1].upper()}{note[1:]}.")
    for number, mask in enumerate(found.masks, start=1):
        own, other = map(name, first_words(mask))
        story = f"first word flipped: {own} → {other}" if mask.flipped else f"both say {own}"
        print_line(f"\n{_mask_name(number, found.masks)}: {story}", "bold")
        entropies = loss(mask.reference_entropy_nats), loss(mask.candidate_entropy_nats)
        said = f"entropy {' → '.join(entropies)} {unit}"
        if mask.kl_nats is not None and mask.js_nats is not None:
            kl, js = loss(mask.kl_nats), loss(mask.js_nats)
            said = f"KL(reference || candidate) {kl}, Jensen-Shannon {js}, {said}"
        print_line(said)
        rows = (
            (
                *(
                    name(row),
                    row.reference_probability,
                    row.candidate_probability,
                    points(row) or "-",
                ),
                " → ".join(
                    f"{rank:,}" if rank else "-"
                    for rank in (row.reference_rank, row.candidate_rank)
                ),
                *(rank_change(row), mark(row)),
            )
            for row in mask.candidates
        )
        print_table(Table.of(columns, rows))
    if found.joint:
        together = (
            (joint.text, joint.reference_nll_nats, joint.candidate_nll_nats, mark(joint))
            for joint in found.joint
        )
        print_line("")
        print_table(Table.of(("text", *_losses(unit), ""), together, "All masks together"))
    print_line("\nnew: only the candidate lists it; gone: only the reference lists it", "dim")
    for model in models:
        print_line(str(model.signature), "dim")
    print_line("")


def print_layers(found: LogitLens) -> None:
    """What each layer would say at each mask, the last at the top; or how sure of each token."""
    print_line(found.encoding.text, "bold")
    whole = found.positions[0].layers[0].true is not None
    if whole:
        numbers = range(len(found.positions[0].layers))
        columns: list[str | Column] = ["token"]
        columns += (Column(f"layer {number}", percent) for number in numbers)
        print_line("The probability of each token as it stands, behind each layer")
        rows: Any = (
            (own.token, *(layer.true and layer.true.probability for layer in own.layers))
            for own in found.positions
        )
        print_table(Table.of(columns, rows))
    for number, own in enumerate(() if whole else found.positions, start=1):
        print_line(f"\n{_mask_name(number, found.positions)} at position {own.position}")
        columns = ["layer", Column("entropy (nats)", ".3f"), "guesses"]
        rows = (
            (layer.layer, layer.entropy_nats, "  ".join(map(_said, layer.candidates)))
            for layer in reversed(own.layers)
        )
        print_table(Table.of(columns, rows))
    print_line(f"\n{found.signature}\n", "dim")


def print_surprisal(found: SentenceSurprisal, unit: str) -> None:
    """The loss of each word of a text, and the figures of all."""
    loss = loss_form(unit, 3)
    columns = (
        *("word", Column(f"NLL ({unit})", loss_form(unit)), Column("probability", percent)),
        *(Column("rank", missing="-"), "the model wanted", "sub-tokens"),
    )
    rows = (
        (
            *(_word(own.word.text, own), own.nll_nats, own.probability, own.rank or None),
            *("  ".join(map(_said, own.wanted)), _parts(own, "  ", unit)),
        )
        for own in found.words
    )
    print_line(found.encoding.text, "bold")
    print_table(Table.of(columns, rows))
    if summary := found.summary:
        print_line(
            f"Total {loss(summary.total_nll_nats)} {unit}; mean "
            f"{loss(summary.mean_token_nll_nats)} a token ({summary.tokens:,}), "
            f"{loss(summary.mean_word_nll_nats)} a word ({summary.words:,}); "
            f"pseudo-perplexity {summary.pseudo_perplexity:,.1f}"
        )
        print_line(f"Most surprising: {summary.most.word.text}")
    if unknown := [own.word.text for own in found.words if own.unknown]:
        print_line(f"Not counted, as the vocabulary cannot spell them: {', '.join(unknown)}")
    for note in found.notes:
        print_line(f"Note: {note}")
    print_line(f"\n{found.signature}\n", "dim")


def _word(text: str, own: Any) -> str:
    return f"{text} (unknown)" if own.unknown else text


def print_compared_losses(found: SentenceComparison, unit: str) -> None:
    """The loss of each word of a text under two models, and the figures of all."""
    loss, alike = loss_form(unit), found.alignment.alike

    def difference(nats: float) -> str:
        return signed(in_unit(nats, unit), 4)

    wanted = (f"{role} wanted" for role in ROLES)
    columns: list[str | Column] = ["word", *_losses(unit), Column("difference", difference)]
    columns += [*wanted, "best word"]
    rows = (
        (
            *(
                _word(own.text, own),
                own.reference_nll_nats,
                own.candidate_nll_nats,
                own.difference_nats,
            ),
            *(
                " | ".join(_said(one.wanted[0]) for one in side)
                for side in (own.reference, own.candidate)
            ),
            "flipped" if own.flipped else "",
        )
        for own in found.words
    )
    print_line(found.alignment.text, "bold")
    print_table(Table.of(columns, rows))
    if summary := found.summary:
        first, second, largest = summary.reference, summary.candidate, summary.largest
        means = [
            ("word", summary.reference_mean_word_nll_nats, summary.candidate_mean_word_nll_nats)
        ]
        if alike and first.tokens > first.words:
            means.append(("token", first.mean_token_nll_nats, second.mean_token_nll_nats))
        elif not alike:
            own, other = (
                summary.reference_mean_character_nll_nats,
                summary.candidate_mean_character_nll_nats,
            )
            means.append(("character", own, other))
        for name, own, other in means:
            print_line(f"Mean loss a {name}: reference {loss(own)}, candidate {loss(other)} {unit}")
        if alike:
            own, other = first.pseudo_perplexity, second.pseudo_perplexity
            print_line(f"Pseudo-perplexity: reference {own:,.2f}, candidate {other:,.2f}")
        differs = not is_zero(in_unit(largest.difference_nats, unit), 4)
        change = f"{largest.text} {difference(largest.difference_nats)}" if differs else "none"
        flips = f"the best word flipped at {summary.flipped} of {summary.words}"
        print_line(f"Largest difference: {change}; {flips}")
    if found.note:
        print_line(found.note)
    print_line("")
    _sign((found.reference, found.candidate))
    print_line("")


def print_search(search: Search, models: Sequence[MaskedLM], unit: str) -> None:
    """The sentences on which two models differ most, and how many were looked at."""
    looked = f"{search.looked:,} sentences ({search.words:,} words hidden)"
    differing = [
        own for own in search.best if own.flipped or not is_zero(in_unit(own.change_nats, unit), 4)
    ]
    if differing:
        says = (f"{role} says" for role in ROLES)
        kl = Column(f"KL ({unit})", loss_form(unit), missing="-", right=True)
        rows = ((rank, *_cells(own)) for rank, own in enumerate(differing, start=1))
        print_table(Table.of(("#", "sentence", *says, kl, *_losses(unit)), rows))
        print_line(f"Another first word in {search.flipped:,} of {looked}.")
        if differing[0].kl_nats is None:
            print_line("The tokenizers differ: the models are compared by word, without KL.")
    else:
        print_line(f"The models do not differ on {looked}.")
    if search.left_out:
        print_line(f"Left out as too short or too long: {search.left_out:,}.")
    _sign(models)


def _cells(own: Divergence) -> tuple[Any, ...]:
    text = own.sentence.text
    hidden = text[own.start : own.end] if own.word is None else f"[{own.word}]"
    return (
        *(
            text[: own.start] + hidden + text[own.end :],
            _said(own.reference_first),
            _said(own.candidate_first),
        ),
        *(own.kl_nats, own.reference_nll_nats, own.candidate_nll_nats),
    )
