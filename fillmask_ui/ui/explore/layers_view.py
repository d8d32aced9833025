"""How the guess forms: what the model's head says to the state of each layer."""

from fillmask_ui.filling import layers
from fillmask_ui.show.layer_grid import LayerGrid
from fillmask_ui.show.render import render
from fillmask_ui.ui.explore.explore_state import Json, LoadedQuestion, Question
from fillmask_ui.ui.explore.sentence_strip import version_of
from fillmask_ui.ui.session import Session

MAX_TOKENS = 42  # columns of the grid, and of what is computed for it
BARS = 5


def guess_layers(session: Session, question: Question) -> Json:
    """The chosen mask layer by layer, or the first tokens of a sentence without a mask."""
    loaded = LoadedQuestion.read(session, question)
    masked = bool(loaded.draft.hidden)
    word = (loaded.draft.word(loaded.mask) or "") if masked else ""
    mask = loaded.mask if masked else None
    # The first opens parts of the model that nothing else needs.
    lens = session.slowly(
        loaded.model,
        (layers, loaded.text, mask, word),
        lambda _: layers(
            loaded.model, loaded.text, top_k=BARS, mask=mask, word=word, most_tokens=MAX_TOKENS
        ),
        title="a view of layers",
    )
    values = {
        "lens": lens,
        "vocabulary": loaded.model.vocabulary,
        "grid": LayerGrid.of(lens, loaded.model.vocabulary),
        "hidden": word,
        "left_out": 0 if masked else len(lens.encoding) - len(lens.positions),
        "number": loaded.mask + 1 if loaded.several else 0,
    }
    html = {
        "story": render("explore/layers.html", **values),
        "table": render("page/layers_table.html", **values),
    }
    return {"version": version_of(loaded.text), "next": None, "html": html}
