"""The mode Slots of Explore: a template, its words in each of its sentences."""

from dataclasses import dataclass

from fillmask_ui.errors import FillmaskError, OptionError
from fillmask_ui.features.slots import heat_map
from fillmask_ui.features.slots.slot_examples import slot_examples
from fillmask_ui.features.slots.slot_tables import long_table
from fillmask_ui.features.slots.word_spread import SlotTable, slots, spellable_words
from fillmask_ui.filling.prompt import split_words
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import ROLES
from fillmask_ui.show.render import render
from fillmask_ui.show.sentences import sentence
from fillmask_ui.ui.components import error_message
from fillmask_ui.ui.explore.explore_state import Json, Question
from fillmask_ui.ui.explore.prediction_view import model_name
from fillmask_ui.ui.session import Session

HINT = "Write a template, as in {He|She} works as a [MASK]."
NO_WORDS = "No word is left to compare."


@dataclass(frozen=True)
class ComparedTemplate:
    """A template under one model or two."""

    models: tuple[MaskedLM, ...]  # the reference first
    tables: tuple[SlotTable, ...]  # one per model, with the same words
    notes: tuple[str, ...]  # why words are left out


def compare_sentences(session: Session, question: Question) -> Json:
    """The templates that ship and the heat map as `html`, or what is wrong with the template."""
    examples, template = slot_examples(), _template(question)
    example_shown = next((item for item in examples if item.template == template), None)
    values = {"examples": examples, "example_shown": example_shown}
    kind, notice = "none", ""
    html = {"story": "", "table": ""}
    if not template:
        kind, notice = "hint", HINT
    else:
        try:
            compared = _compared(session, question)
        except FillmaskError as error:
            kind, notice = "error", error_message(error)
        else:
            html["story"] = render("slots/heat_map.html", **values, **_heat_map(compared, question))
            html["table"] = render("slots/long_table.html", table=long_table(compared.tables))
    if not html["story"]:
        html["story"] = render("slots/examples.html", **values)
    return {"kind": kind, "notice": notice, "html": html, "next": None}


def _heat_map(compared: ComparedTemplate, question: Question) -> Json:
    """The values of the template of the same name."""
    tables = compared.tables
    share = heat_map.log_scale(tables, 0.0, 1.0)
    x = heat_map.log_scale(tables, *heat_map.PLOT)
    y = heat_map.log_scale(tables, *heat_map.HEIGHT)
    sentences = tables[0].sentences
    return {
        "slot_template": tables[0].template,
        "most": max(tables[0].words, key=lambda word: word.spread_nats),
        "chosen": not split_words(question.fields["slot_words"]),
        "sentences": sentences,
        "groups": heat_map.head_groups(sentences),
        "names": heat_map.head_names(sentences),
        "rows": [heat_map.heat_rows(table, share, question.unit) for table in tables],
        "models": [model_name(model) for model in compared.models],
        "roles": ROLES,
        "powers": [(share(p), heat_map.power_label(p)) for p in heat_map.powers(share)],
        "dots": heat_map.dots(tables, x, y) if len(sentences) == 2 else [],
        "ticks": [(x(p), y(p), heat_map.power_label(p)) for p in heat_map.powers(x)],
        "x": x,
        "y": y,
        "notes": [sentence(note) for note in compared.notes],
    }


def csv_file(session: Session, question: Question) -> Json:
    """Every word in every sentence, unrounded: `name`, `type` and `text` of a file."""
    text = long_table(_compared(session, question).tables).to_csv()
    return {"name": "slots.csv", "type": "text/csv", "text": text}


def _template(question: Question) -> str:
    return question.fields["template"].strip()


def _compared(session: Session, question: Question) -> ComparedTemplate:
    """A `FillmaskError` for a template that cannot be read; `Unfinished` while a model loads."""
    models = [session.model_soon(question.model)]
    if question.compare:
        models.append(session.model_soon(question.compare))
    template = _template(question)
    typed = split_words(question.fields["slot_words"])
    words, problems = spellable_words(models, template, typed)
    if typed and not words:
        raise OptionError(f"{NO_WORDS} {' '.join(problems)}")
    tables = [session.ask(models[0], slots, template, candidates=words)]
    if len(models) > 1:
        # Both have the words that the reference chose.
        chosen = tuple(word.word for word in tables[0].words)
        words, more_problems = spellable_words(models, template, chosen)
        problems = [*dict.fromkeys([*problems, *more_problems])]
        if not words:
            raise OptionError(f"{NO_WORDS} {' '.join(problems)}")
        tables = [session.ask(model, slots, template, candidates=words) for model in models]
    return ComparedTemplate(tuple(models), tuple(tables), tuple(problems))
