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
from fillmask_ui.comparing.word_contrast import ComparisonSummary, SentenceComparison
from fillmask_ui.filling.logit_lens import LogitLens
from fillmask_ui.filling.word_surprisal import SentenceSurprisal
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import ROLES, Filling
from fillmask_ui.show.numbers import in_unit, is_zero, loss_form, percent, signed
from fillmask_ui.show.table import Column, Table
from fillmask_ui.show.words import compared_name, first_words, mark, points, rank_change


def _losses(unit: str) -> list[Column]:
    headings = (f"{role} NLL ({unit})" for role in ROLES)
    return [Column(heading, loss_form(unit), missing="-", right=True) for heading in headings]


def _guess(candidate: Any) -> str:
    return f"{candidate.word} {percent(candidate.probability)}"


def _guesses(candidates: Iterable[Any]) -> str:
    return "  ".join(_guess(candidate) for candidate in candidates)


def _parts(parts: Iterable[Any], separator: str, unit: str) -> str:
    loss = loss_form(unit, 3)
    return separator.join(f"{part.token} {loss(part.nll_nats)}" for part in parts)


def _print_signatures(models: Iterable[Any]) -> None:
    for role, model in zip(ROLES, models, strict=True):
        print_line(f"{role.capitalize()}: {model.signature}", "dim")


def _mask_name(number: int, masks: Sequence[Any]) -> str:
    return f"Mask {number} of {len(masks)}" if len(masks) > 1 else "Mask"


def print_filling(filling: Filling, unit: str) -> None:
    """The words at each mask of a text, and the joint fillings."""
    loss, brief = loss_form(unit), loss_form(unit, 3)
    probability, nll = Column("probability", percent), Column(f"NLL ({unit})", loss)
    columns = ("rank", "word", "token", Column("id", ""), probability, nll)
    scored_columns = ("word", Column("rank", missing="-"), probability, nll, "sub-tokens")
    cells_of = attrgetter("rank", "word", "token", "token_id", "probability", "nll_nats")
    print_line(filling.encoding.text, "bold")
    for number, mask in enumerate(filling.masks, start=1):
        print_line(
            f"\n{_mask_name(number, filling.masks)} at position {mask.position}: "
            f"entropy {brief(mask.entropy_nats)} {unit}, perplexity {mask.perplexity:,.1f}"
        )
        print_table(Table.of(columns, map(cells_of, mask.candidates)))
        if mask.scored:
            rows = [
                (
                    word.word,
                    word.rank,
                    word.probability,
                    word.nll_nats,
                    _parts(word.parts, "  ", unit),
                )
                for word in mask.scored
            ]
            print_table(Table.of(scored_columns, rows, "Your candidates"))
    if filling.joint:
        joint_rows = [
            (joint.text, joint.probability, joint.nll_nats, _parts(joint.parts, " + ", unit))
            for joint in filling.joint
        ]
        joint_columns = ("text", probability, nll, "each given those before it")
        print_line("")
        print_table(Table.of(joint_columns, joint_rows, "All masks together"))
    print_line(f"\n{filling.signature}\n", "dim")


def print_comparison(comparison: Comparison, unit: str, models: Sequence[MaskedLM]) -> None:
    """The words that two models expect at each mask of a text."""
    reference, candidate = models
    name = partial(compared_name, first=reference.vocabulary, second=candidate.vocabulary)
    loss = loss_form(unit)
    columns: tuple[str | Column, ...] = (
        "word",
        *(Column(role, percent, missing="-") for role in ROLES),
        *(Column(heading, right=True) for heading in ("difference, points", "rank", "change")),
        "",
    )
    print_line(comparison.reference.encoding.text, "bold")
    print_line(f"Reference: {reference.signature.name}, candidate: {candidate.signature.name}")
    for note in comparison.notes:
        print_line(f"{note[:1].upper()}{note[1:]}.")
    for number, mask in enumerate(comparison.masks, start=1):
        first, second = map(name, first_words(mask))
        story = f"top word changed: {first} → {second}" if mask.flipped else f"both predict {first}"
        print_line(f"\n{_mask_name(number, comparison.masks)}: {story}", "bold")
        entropies = f"{loss(mask.reference_entropy_nats)} → {loss(mask.candidate_entropy_nats)}"
        figures = f"entropy {entropies} {unit}"
        if mask.kl_nats is not None and mask.js_nats is not None:
            kl, js = loss(mask.kl_nats), loss(mask.js_nats)
            figures = f"KL(reference || candidate) {kl}, Jensen-Shannon {js}, {figures}"
        print_line(figures)
        rows = [
            (
                name(word),
                word.reference_probability,
                word.candidate_probability,
                points(word) or "-",
                f"{_rank(word.reference_rank)} → {_rank(word.candidate_rank)}",
                rank_change(word),
                mark(word),
            )
            for word in mask.candidates
        ]
        print_table(Table.of(columns, rows))
    if comparison.joint:
        joint_rows = [
            (joint.text, joint.reference_nll_nats, joint.candidate_nll_nats, mark(joint))
            for joint in comparison.joint
        ]
        print_line("")
        print_table(Table.of(("text", *_losses(unit), ""), joint_rows, "All masks together"))
    print_line("\nnew: only the candidate lists it; gone: only the reference lists it", "dim")
    for model in models:
        print_line(str(model.signature), "dim")
    print_line("")


def _rank(rank: int | None) -> str:
    return f"{rank:,}" if rank else "-"


def print_layers(lens: LogitLens) -> None:
    """What each layer would say at each mask, the last at the top; or how sure of each token."""
    print_line(lens.encoding.text, "bold")
    if lens.positions[0].layers[0].true is not None:
        _print_token_layers(lens)
    else:
        columns = ("layer", Column("entropy (nats)", ".3f"), "guesses")
        for number, mask in enumerate(lens.positions, start=1):
            print_line(f"\n{_mask_name(number, lens.positions)} at position {mask.position}")
            rows = [
                (layer.layer, layer.entropy_nats, _guesses(layer.candidates))
                for layer in reversed(mask.layers)
            ]
            print_table(Table.of(columns, rows))
    print_line(f"\n{lens.signature}\n", "dim")


def _print_token_layers(lens: LogitLens) -> None:
    columns: list[str | Column] = ["token"]
    columns += (Column(f"layer {layer.layer}", percent) for layer in lens.positions[0].layers)
    rows = [
        (token.token, *(layer.true and layer.true.probability for layer in token.layers))
        for token in lens.positions
    ]
    print_line("Probability of each token of the text, after each layer")
    print_table(Table.of(columns, rows))


def print_surprisal(surprisal: SentenceSurprisal, unit: str) -> None:
    """The loss of each word of a text, and the figures of all."""
    loss = loss_form(unit, 3)
    columns = (
        "word",
        Column(f"NLL ({unit})", loss_form(unit)),
        Column("probability", percent),
        Column("rank", missing="-"),
        "the model expected",
        "sub-tokens",
    )
    rows = [
        (
            _word(word.word.text, unknown=word.unknown),
            word.nll_nats,
            word.probability,
            word.rank or None,
            _guesses(word.expected),
            _parts(word.parts, "  ", unit),
        )
        for word in surprisal.words
    ]
    if surprisal.given:
        print_line(f"Given: {surprisal.given}")
    print_line(surprisal.encoding.text[len(surprisal.given) :].strip(), "bold")
    print_table(Table.of(columns, rows))
    if summary := surprisal.summary:
        print_line(
            f"Total {loss(summary.total_nll_nats)} {unit}, "
            f"{loss(summary.mean_token_nll_nats)} per token ({summary.tokens:,}), "
            f"{loss(summary.mean_word_nll_nats)} per word ({summary.word_count:,}); "
            f"pseudo-perplexity {summary.pseudo_perplexity:,.1f}"
        )
        print_line(f"Most surprising: {summary.most.word.text}")
    if unknown := [word.word.text for word in surprisal.words if word.unknown]:
        print_line(f"Not counted, because the vocabulary cannot spell them: {', '.join(unknown)}")
    for note in surprisal.notes:
        print_line(f"Note: {note}")
    print_line(f"\n{surprisal.signature}\n", "dim")


def _word(text: str, *, unknown: bool) -> str:
    return f"{text} (unknown)" if unknown else text


def print_compared_losses(comparison: SentenceComparison, unit: str) -> None:
    """The loss of each word of a text under two models, and the figures of all."""
    columns: tuple[str | Column, ...] = (
        "word",
        *_losses(unit),
        Column("difference", lambda nats: signed(in_unit(nats, unit), 4)),
        *(f"{role} expected" for role in ROLES),
        "top word",
    )
    rows = [
        (
            _word(word.text, unknown=word.unknown),
            word.reference_nll_nats,
            word.candidate_nll_nats,
            word.difference_nats,
            " | ".join(_guess(part.expected[0]) for part in word.reference),
            " | ".join(_guess(part.expected[0]) for part in word.candidate),
            "changed" if word.flipped else "",
        )
        for word in comparison.words
    ]
    print_line(comparison.alignment.text, "bold")
    print_table(Table.of(columns, rows))
    if summary := comparison.summary:
        _print_loss_summary(summary, unit, alike=comparison.alignment.alike)
    if comparison.note:
        print_line(comparison.note)
    print_line("")
    _print_signatures((comparison.reference, comparison.candidate))
    print_line("")


def _print_loss_summary(summary: ComparisonSummary, unit: str, *, alike: bool) -> None:
    loss = loss_form(unit)
    reference, candidate = summary.reference, summary.candidate
    means = [("word", summary.reference_mean_word_nll_nats, summary.candidate_mean_word_nll_nats)]
    if not alike:
        means.append(
            (
                "character",
                summary.reference_mean_character_nll_nats,
                summary.candidate_mean_character_nll_nats,
            )
        )
    elif reference.tokens > reference.word_count:
        means.append(("token", reference.mean_token_nll_nats, candidate.mean_token_nll_nats))
    for name, reference_nats, candidate_nats in means:
        print_line(
            f"Mean loss per {name}: reference {loss(reference_nats)}, "
            f"candidate {loss(candidate_nats)} {unit}"
        )
    if alike:
        print_line(
            f"Pseudo-perplexity: reference {reference.pseudo_perplexity:,.2f}, "
            f"candidate {candidate.pseudo_perplexity:,.2f}"
        )
    difference = in_unit(summary.largest.difference_nats, unit)
    change = "none" if is_zero(difference, 4) else f"{summary.largest.text} {signed(difference, 4)}"
    flips = f"the top word changed at {summary.flipped} of {summary.word_count} words"
    print_line(f"Largest difference: {change}; {flips}")


def print_search(search: Search, models: Sequence[MaskedLM], unit: str) -> None:
    """The sentences on which two models differ most, and how many were looked at."""
    looked = f"{search.looked:,} sentences ({search.hidden_words:,} words hidden)"
    differing = [
        divergence
        for divergence in search.best
        if divergence.flipped or not is_zero(in_unit(divergence.change_nats, unit), 4)
    ]
    if differing:
        kl = Column(f"KL ({unit})", loss_form(unit), missing="-", right=True)
        guesses = [f"{role} predicts" for role in ROLES]
        columns: list[str | Column] = ["#", "sentence", *guesses, kl, *_losses(unit)]
        rows = [
            (
                rank,
                _marked_sentence(divergence),
                _guess(divergence.reference_first),
                _guess(divergence.candidate_first),
                divergence.kl_nats,
                divergence.reference_nll_nats,
                divergence.candidate_nll_nats,
            )
            for rank, divergence in enumerate(differing, start=1)
        ]
        print_table(Table.of(columns, rows))
        print_line(f"Another first word in {search.flipped:,} of {looked}.")
        if differing[0].kl_nats is None:
            print_line("The tokenizers differ: the models are compared by word, without KL.")
    else:
        print_line(f"The models do not differ on {looked}.")
    if search.left_out:
        print_line(f"Skipped as too short or too long: {search.left_out:,}.")
    _print_signatures(models)


def _marked_sentence(divergence: Divergence) -> str:
    """The sentence with the hidden word in brackets, if it has one."""
    text, start, end = divergence.sentence.text, divergence.start, divergence.end
    if divergence.word is None:
        return text
    return f"{text[:start]}[{divergence.word}]{text[end:]}"
