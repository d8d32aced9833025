"""What the page explains: every name in every tab, and nothing else."""

import re

from explore_page import EXPLANATIONS

from fillmask_ui.features.quantize import diagnosis_view
from fillmask_ui.features.quantize.diagnosis import Diagnosis, PartNoise, Restored
from fillmask_ui.show.render import render
from fillmask_ui.ui.explore.contrast_view import contrast_models
from fillmask_ui.ui.explore.explore_answer import joint
from fillmask_ui.ui.explore.explore_state import Question
from fillmask_ui.ui.explore.guess_view import guess
from fillmask_ui.ui.explore.prediction_view import answer
from fillmask_ui.ui.explore.sentence_strip import Draft


def test_each_is_used_and_stands_once_on_the_page(session):
    """The header has the lines; every name that explains itself refers to one of them."""
    assert len(EXPLANATIONS) == render("ui/header.html", title="").count('id="about-')
    for line in EXPLANATIONS.values():
        assert line[0].isupper() and line.endswith(".") and len(line) <= 100, line
    text = "the [MASK] sat on the [MASK]."
    question = Question(text, draft=Draft(text, ("cat", "mat")), words="dog")
    pieces = answer(session, question).html
    own = guess(session, Question("a [MASK]", guesses="cat", truth="cat"))["html"]
    together = joint(session, Question(question.text))["html"]
    both = contrast_models(session, Question(question.text, compare="table"))["html"]
    nothing = {name: [] for name in ("lines", "stamps", "alarms", "recipes")}
    variants = render("quantize/rows.html", texts=0, busy="", **nothing)
    restored = Restored(0.1, None, 1)
    part = PartNoise("query", "product", 0, (4, 4), "int8", 1, 4, 9.0, 9.0, restored=restored)
    known = Diagnosis("small", "large", (part,))
    panel = diagnosis_view.render_pieces(known, "small").values()
    html = "".join([*pieces.values(), own, together, both, variants, *panel])
    assert set(re.findall(r'aria-describedby="about-(\w+)"', html)) == set(EXPLANATIONS)
