"""Two distributions at one mask as one chart: of two models, or of two sentences."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from fillmask_ui.comparing import Comparison, Contrast, compare, pair_masks
from fillmask_ui.filling import surprisal, unscorable
from fillmask_ui.filling.prompt import normalise_masks, split_words
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.show.answers import contrast_html, surprisal_values
from fillmask_ui.show.render import render
from fillmask_ui.show.sentences import sentence
from fillmask_ui.show.words import candidate_names
from fillmask_ui.ui.explore.explore_state import Json, LoadedQuestion, Question
from fillmask_ui.ui.explore.prediction_view import model_name
from fillmask_ui.ui.explore.sentence_strip import version_of
from fillmask_ui.ui.session import Session, check_text

ONE_MODEL = {"kind": "hint", "notice": "Choose a second model to compare with.", "html": ""}
# Longest name of a sentence by the words in which it differs.
_MAX_NAME = 28


class ModelPair(NamedTuple):
    """A question under its two models."""

    loaded: LoadedQuestion
    models: tuple[MaskedLM, MaskedLM]  # reference, candidate
    hidden: str | None  # the word behind the chosen mask, if both can score it
    words: tuple[str, ...]  # typed words that both can score
    notes: tuple[str, ...]  # why the others cannot be compared

    @classmethod
    def read(cls, session: Session, question: Question) -> ModelPair:
        """Load both models and prepare the comparison; a `FillmaskError` if impossible."""
        loaded = LoadedQuestion.read(session, question)
        models = loaded.model, session.model(loaded.question.compare)
        words, problems = split_words(loaded.question.words), dict[str, str]()
        hidden = loaded.draft.word(loaded.mask)
        for model in models:
            text = loaded.text.replace(
                loaded.model.vocabulary.mask_token, model.vocabulary.mask_token
            )
            bad = unscorable(model, text, [*words, *([hidden] if hidden else [])])
            problems |= {word: f"{model.signature.name}: {why}" for word, why in bad.items()}
        scorable = tuple(word for word in words if word not in problems)
        notes = tuple(f"{problems[word]}." for word in words if word in problems)
        return cls(loaded, models, None if hidden in problems else hidden, scorable, notes)

    @property
    def names(self) -> tuple[str, str]:
        return model_name(self.models[0]), model_name(self.models[1])

    def compare(self, session: Session, **choices: Any) -> Comparison:
        return session.ask(self.models, compare, self.loaded.text, **choices)


def contrast_models(session: Session, question: Question) -> Json:
    """The chosen mask under both models as `html`; `Unfinished` while the candidate loads."""
    if not question.compare:
        return ONE_MODEL
    session.model_soon(question.compare)
    pair = ModelPair.read(session, question)
    words = dict.fromkeys([*([pair.hidden] if pair.hidden else []), *pair.words])
    comparison = pair.compare(session, top_k=question.top_k, candidates=tuple(words), joint=0)
    return contrast_answer(pair, comparison.masks[pair.loaded.mask], comparison.notes)


def contrast_answer(pair: ModelPair, contrast: Contrast, notes: Sequence[str] = ()) -> Json:
    """One mask under both models, in the form of `contrast_models`."""
    loaded = pair.loaded
    html = contrast_html(
        contrast,
        [model.vocabulary for model in pair.models],
        **_look(loaded.question),
        of="models",
        names=("reference", "candidate"),
        titles=pair.names,
        number=loaded.mask if loaded.several else None,
        hidden=pair.hidden,
        key=f"{version_of(loaded.text)}:{loaded.mask}",
        notes=[*map(sentence, notes), *pair.notes],
    )
    return {"kind": "none", "html": html}


def _look(question: Question) -> dict[str, Any]:
    """How the reader wants to see it."""
    return {"by": question.by, "unit": question.unit, "zoom": question.zoom}


def joint_html(session: Session, question: Question) -> str:
    """The joint fillings of both models as a table; blank if there are none."""
    pair = ModelPair.read(session, question)
    return render(
        "page/compare_joint.html",
        joint=pair.compare(session, top_k=1).joint,
        names=pair.names,
        unit=question.unit,
        version=version_of(pair.loaded.text),
    )


def contrast_sentences(session: Session, question: Question) -> Json:
    """The sentence beside the second one, `other`: `html`, or a hint at what is missing."""
    loaded = LoadedQuestion.read(session, question)
    check_text(question.other)
    mask_token = loaded.model.vocabulary.mask_token
    second = normalise_masks(question.other, mask_token)
    whole = loaded.text.strip() and second.strip() and mask_token not in loaded.text + second
    if whole and loaded.text.split() != second.split():
        return {"kind": "none", "html": _whole_pair(session, loaded, second)}
    if hint := _missing(loaded.text, second, mask_token):
        return {"kind": "hint", "notice": hint, "html": ""}
    words = split_words(question.words)
    for text in (loaded.text, second):
        bad = unscorable(loaded.model, text, words)
        words = tuple(word for word in words if word not in bad)
    choices = {"masks": (loaded.mask, loaded.mask), "top_k": question.top_k, "candidates": words}
    html = contrast_html(
        session.ask(loaded.model, pair_masks, loaded.text, second, **choices),
        (loaded.model.vocabulary, loaded.model.vocabulary),
        **_look(question),
        of="sentences",
        names=differing_words(loaded.text, second),
        titles=(loaded.text, second),
        number=loaded.mask if loaded.several else None,
    )
    return {"kind": "none", "html": html}


def _whole_pair(session: Session, loaded: LoadedQuestion, second: str) -> str:
    """Two sentences without a mask: which is the more likely one, and the losses of their words."""
    measured = [session.ask(loaded.model, surprisal, text) for text in (loaded.text, second)]
    unit, vocabulary = loaded.question.unit, loaded.model.vocabulary
    values = [surprisal_values(sentence.words, vocabulary, unit) for sentence in measured]
    totals = [
        sentence.summary.total_nll_nats if sentence.summary else math.nan for sentence in measured
    ]
    words = [len(sentence.words) for sentence in measured]
    return render(
        "explore/whole_pair.html",
        sentences=[*zip((loaded.text, second), values, words, strict=True)],
        names=differing_words(loaded.text, second),
        margin=totals[1] - totals[0],
        unit=unit,
        vocabulary=vocabulary,
        candidate_names=candidate_names,
    )


def _missing(first: str, second: str, mask_token: str) -> str:
    """A hint at what the second sentence lacks; blank if it can be compared."""
    first_masks, second_masks = (
        "1 mask" if count == 1 else f"{count} masks"
        for count in (first.count(mask_token), second.count(mask_token))
    )
    if not second.strip():
        return f"Write the second sentence, with {mask_token} in it."
    if mask_token not in first:
        return "Hide a word of the first sentence: click it."
    if mask_token not in second:
        return f"The second sentence has no mask: write {mask_token} where the word is hidden."
    if second_masks != first_masks:
        return (
            f"The first sentence has {first_masks}, the second {second_masks}: "
            "give both the same number."
        )
    if first.split() == second.split():
        return "Both sentences are the same: change a word in the second."
    return ""


def differing_words(first: str, second: str) -> tuple[str, str]:
    """Short names of two sentences: the words in which they differ, if these are few.

    >>> differing_words("The nurse said [MASK].", "The doctor said [MASK].")
    ('nurse', 'doctor')
    >>> differing_words("A [MASK].", "A very old [MASK].")
    ('first sentence', 'second sentence')
    """
    left, right = (re.findall(r"\[\w+\]|<\w+>|\w+|[^\w\s]", text) for text in (first, second))
    changes = SequenceMatcher(None, left, right, autojunk=False).get_opcodes()
    parts = [
        (" ".join(left[a:b]), " ".join(right[c:d])) for tag, a, b, c, d in changes if tag != "equal"
    ]
    names = (" … ".join(old for old, _ in parts), " … ".join(old for _, old in parts))
    plain = all(old and new and not set(old + new) & set("[<") for old, new in parts)
    short = parts and max(map(len, names)) <= _MAX_NAME
    return names if plain and short else ("first sentence", "second sentence")
