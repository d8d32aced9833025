"""What a model's files say about it: its card, and its graph in tables."""

from fillmask_ui.models.model_facts import read_facts
from fillmask_ui.show.model_facts import card_html, facts_table, graph_tables
from fillmask_ui.show.render import render
from fillmask_ui.ui.explore.explore_state import Json, Question
from fillmask_ui.ui.session import Session


def about(session: Session, question: Question) -> Json:
    """The facts of the loaded model as `html`; a `FillmaskError` for one that is not offered."""
    model = session.model_soon(question.model)
    files = getattr(model, "files", None)
    if files is None or not files.weights:
        return {"html": render("explore/about.html", facts=None)}
    facts = read_facts(files)
    html = render(
        "explore/about.html",
        facts=facts,
        about=facts_table(facts),
        graph=graph_tables(facts),
        card=card_html(facts.card),
    )
    return {"html": html}
