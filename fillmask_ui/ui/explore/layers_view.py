"""How the guess forms: what the model's head says to the state of each layer."""

from fillmask_ui.filling import layers
from fillmask_ui.show.layer_grid import LayerGrid
from fillmask_ui.show.render import render
from fillmask_ui.ui.explore.explore_state import Asked, Json, Question
from fillmask_ui.ui.explore.sentence_strip import version_of
from fillmask_ui.ui.session import Session

MAX_TOKENS = 42  # columns of the grid, and of what is computed for it
BARS = 5


def guess_layers(session: Session, question: Question) -> Json:
    """The chosen mask layer by layer, or the first tokens of a sentence without a mask."""
    asked = Asked.read(session, question)
    masked = bool(asked.draft.hidden)
    word = (asked.draft.word(asked.mask) or "") if masked else ""
    mask = asked.mask if masked else None
    # The first opens parts of the model that nothing else needs.
    found = session.slowly(
        asked.model,
        (layers, asked.text, mask, word),
        lambda _: layers(
            asked.model, asked.text, top_k=BARS, mask=mask, word=word, most_tokens=MAX_TOKENS
        ),
    )
    shown = {
        "lens": found,
        "vocabulary": asked.model.vocabulary,
        "grid": LayerGrid.of(found, asked.model.vocabulary),
        "hidden": word,
        "left_out": 0 if masked else len(found.encoding) - len(found.positions),
        "number": asked.mask + 1 if asked.several else 0,
    }
    html = {
        "story": render("explore/layers.html", **shown),
        "table": render("page/layers_table.html", **shown),
    }
    return {"version": version_of(asked.text), "next": None, "html": html}
