"""The modes of the Explore tab, and the functions that its scripts call.

The browser holds the tab's state and sends it along; a function of it answers with JSON.
"""

from fillmask_ui.extensions import Mode, features, load
from fillmask_ui.schema import from_values
from fillmask_ui.ui.components import Served
from fillmask_ui.ui.explore.explore_state import Question

MODES = (
    Mode(
        "",
        "Predict",
        "which words the model expects, or how surprising each word is",
        whole="surprise",
        joint=True,
        views={"surprise": "fillmask_ui.ui.explore.attribution_view:surprisal"},
        template="explore/predict.html",
    ),
    Mode(
        "mattered",
        "What mattered",
        "hides each other word in turn",
        masked="mattered",
        needs_mask=True,
        views={"mattered": "fillmask_ui.ui.explore.attribution_view:occlusion"},
    ),
    Mode(
        "sentences",
        "Two sentences",
        "the same model on a second sentence",
        masked="pair",
        whole="pair",
        state_field="other",
        views={"pair": "fillmask_ui.ui.explore.contrast_view:contrast_sentences"},
        template="explore/second_sentence.html",
    ),
    Mode(
        "models",
        "Two models",
        "a second model on the same sentence",
        masked="compared",
        whole="apart",
        replayed="both_replayed",
        joint=True,
        state_field="compare",
        two_models=True,
        views={
            "compared": "fillmask_ui.ui.explore.contrast_view:contrast_models",
            "apart": "fillmask_ui.ui.explore.attribution_view:contrast_words",
            "both_replayed": "fillmask_ui.ui.explore.replay_view:contrast_models",
            "parting": "fillmask_ui.ui.explore.divergence_view:divergent",
        },
        below="explore/search.html",
    ),
    Mode(
        "guess",
        "Guess first",
        "the class guesses before the model's prediction is shown",
        needs_mask=True,
        views={
            "guess": "fillmask_ui.ui.explore.guess_view:guess",
            "guesses": "fillmask_ui.ui.explore.guess_view:guesses",
        },
        template="explore/guess.html",
    ),
    Mode(
        "layers",
        "How the guess forms",
        "what each layer would predict",
        masked="layers",
        whole="layers",
        views={"layers": "fillmask_ui.ui.explore.layers_view:guess_layers"},
    ),
)
# Name in the browser -> function, whatever the mode.
_SERVED = {
    "about": "fillmask_ui.ui.explore.model_view:about",
    "answer": "fillmask_ui.ui.explore.explore_answer:answer",
    "replay": "fillmask_ui.ui.explore.replay_view:answer",
    "download": "fillmask_ui.ui.explore.downloads:download",
    "joint": "fillmask_ui.ui.explore.explore_answer:joint",
    "losses": "fillmask_ui.ui.explore.prediction_view:losses",
    "models": "fillmask_ui.ui.explore.explore_answer:model_options",
}


def modes() -> tuple[Mode, ...]:
    """Those of the core, then those of features."""
    return (*MODES, *(mode for feature in features() for mode in feature.modes))


def served() -> dict[str, Served]:
    """All that the browser calls; a `ValueError` if two modes serve one name."""
    targets = dict(_SERVED)
    for mode in modes():
        if taken := targets.keys() & mode.views.keys():
            raise ValueError(f"mode {mode.label!r} serves {sorted(taken)}, which is served already")
        targets |= mode.views
    return {name: _reading(target) for name, target in targets.items()}


def _reading(target: str) -> Served:
    """A function of the state as JSON; a `FillmaskError` for a value that is none."""
    return lambda session, values: load(target)(session, from_values(Question, values))
