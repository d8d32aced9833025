"""What the Evaluate tab's controls ask for, checked: plain values in, a request out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.intervals import Limits
from fillmask_ui.masking import DEFAULT_SHARES, MaskRecipe
from fillmask_ui.texts import TextChoice, TextSource
from fillmask_ui.ui.evaluate_uploads import check_public_upload, keep_upload

EMBEDDED, UPLOAD, DATASET = "embedded", "upload", "dataset"
# What a stranger may ask of a public page; about a minute of one processor.
PUBLIC_TEXTS = 200
PUBLIC_TEXTS_ONE_BY_ONE = 40
PUBLIC_TOKENS = 128


@dataclass(frozen=True)
class Form:
    """The controls at one moment, in the order in which the tab hands them over.

    Attributes:
        where: `embedded`, `upload` or `dataset`.
        upload: path of the file that the page received.
        dataset: id of a Hugging Face data set, or a file or folder on this machine.
        dataset_name: its configuration.
        split: of the data set.
        revision: of the data set.
        streaming: whether it is read over the network while used.
        column: that holds the text; blank for `text` or the only one.
        by: for plain text, `line` or `paragraph`.
        metric: one of `evaluation.METRICS`.
        model: reference of model A.
        baseline: reference of model B; blank for none.
        samples: at most so many texts; 0 for all.
        shuffle: whether they are drawn at random.
        seed: of masks and shuffling.
        mask_probability: of a token to be hidden.
        shares: mask, random and unchanged, separated by blanks or commas.
        whole_word: hide whole words.
        within_word: hide the later sub-tokens of the word as well.
        suffix_tokens: how many at the end.
        max_tokens: longest text; 0 for the model's limit.
        pass_percent: a smaller change is a PASS.
        risk_percent: a smaller change is AT_RISK.
    """

    where: str = EMBEDDED
    upload: str | None = None
    dataset: str | None = ""
    dataset_name: str | None = ""
    split: str | None = "test"
    revision: str | None = ""
    streaming: bool = False
    column: str | None = ""
    by: str = "line"
    metric: str = "cross-entropy"
    model: str | None = ""
    baseline: str | None = ""
    samples: float | None = 100
    shuffle: bool = True
    seed: float | None = 42
    mask_probability: float | None = 0.15
    shares: str | None = " ".join(f"{share:g}" for share in DEFAULT_SHARES)
    whole_word: bool = False
    within_word: bool = False
    suffix_tokens: float | None = 8
    max_tokens: float | None = 0
    pass_percent: float | None = 5
    risk_percent: float | None = 10


@dataclass(frozen=True)
class Request:
    """What is to be measured.

    Attributes:
        source: the texts.
        config: what is measured.
        limits: borders of the verdict.
        model: reference of model A.
        baseline: reference of model B; blank for none.
        label: the texts' signature without folders of this machine.
    """

    source: TextSource
    config: EvaluationConfig
    limits: Limits
    model: str
    baseline: str
    label: str

    def texts(self) -> dict[str, Any]:
        """For run.json: enough to read the same texts again."""
        return {**self.source.to_dict(), "signature": self.label}

    def choices(self) -> dict[str, Any]:
        """For run.json: how the models were asked for."""
        return {
            "model": {"reference": self.model},
            "baseline": {"reference": self.baseline} if self.baseline else None,
        }


def read_form(
    form: Form, root: Path, *, default_model: str = "embedded", public: bool = False
) -> Request:
    """The request that the controls make.

    Args:
        form: the controls.
        root: where runs are kept; an uploaded file is kept beside them, so that a run can be
            resumed when the browser is long gone.
        default_model: what a blank model means.
        public: the page's own texts and uploads only, and not many.

    Raises:
        OptionError: for values that make no sense, or are not offered on a public page.
        DataError: if the uploaded file is gone or cannot be kept.
    """
    config = _config(form)
    limits = Limits(
        _number("the border of PASS", form.pass_percent) / 100,
        _number("the border of AT_RISK", form.risk_percent) / 100,
    )
    samples = _whole("the number of texts", form.samples, least=0) or None
    if public:
        samples = _public_samples(samples, config)
        config = _public_config(config)
    source = _source(form, samples, root, public=public)
    label = str(replace(source, where=Path(source.where).name) if _is_file(source) else source)
    return Request(
        source,
        config,
        limits,
        _text(form.model) or default_model,
        _text(form.baseline),
        label,
    )


def _is_file(source: TextSource) -> bool:
    return source.kind == "file"


def _config(form: Form) -> EvaluationConfig:
    recipe, suffix = MaskRecipe(), 8
    if form.metric == "cross-entropy":
        recipe = _recipe(form)
    if form.metric == "suffix":
        suffix = _whole("the number of tokens at the end", form.suffix_tokens, least=1)
    return EvaluationConfig(
        metric=form.metric,
        recipe=recipe,
        within_word=bool(form.within_word) and form.metric == "pseudo-perplexity",
        suffix_tokens=suffix,
        seed=_whole("the seed", form.seed, least=0),
        max_tokens=_whole("max tokens", form.max_tokens, least=0) or None,
    )


def _recipe(form: Form) -> MaskRecipe:
    probability = _number("the mask probability", form.mask_probability)
    if form.whole_word:
        return MaskRecipe(probability, whole_word=True)
    parts = _text(form.shares).replace(",", " ").split()
    try:
        shares = [float(part) for part in parts]
    except ValueError:
        shares = []
    if len(shares) != 3:
        raise OptionError(
            "the shares are three numbers (mask, random, unchanged) that add up to 1, such as "
            f"0.8 0.1 0.1; they were {form.shares!r}"
        )
    return MaskRecipe(probability, *shares)


def _source(form: Form, samples: int | None, root: Path, *, public: bool) -> TextSource:
    drawn = {"samples": samples, "shuffle": bool(form.shuffle), "seed": int(form.seed or 0)}
    column = _text(form.column) or None
    if form.where == EMBEDDED:
        # The box is not shown then, but what is in it is checked.
        return replace(TextChoice(column=column, **drawn).source(), column=None)
    if form.where == UPLOAD:
        if not form.upload:
            raise OptionError("no file was uploaded: choose one, or pick the embedded texts")
        if public:
            check_public_upload(Path(form.upload))
        kept = keep_upload(Path(form.upload), root)
        by = "paragraph" if form.by == "paragraph" and _plain(kept) else "line"
        return TextChoice(str(kept), column=column, by=by, **drawn).source()
    if form.where != DATASET or public:
        raise OptionError(
            "this public page evaluates its own texts and uploaded files; it fetches no data sets"
            if public
            else f"unknown place of texts {form.where!r}"
        )
    reference = _text(form.dataset)
    if not reference or reference == "-":
        raise OptionError(
            "no data set was named: write the id of a Hugging Face data set, such as "
            "Salesforce/wikitext, or the path of a file"
        )
    source = TextChoice(reference, column=column, **drawn).source()
    if source.kind == "dataset":
        return replace(
            source,
            config=_text(form.dataset_name) or None,
            split=_text(form.split) or "test",
            revision=_text(form.revision) or None,
            streaming=bool(form.streaming),
        )
    return replace(source, by=form.by) if _plain(Path(source.where)) else source


def _plain(path: Path) -> bool:
    return path.name.lower().removesuffix(".gz").endswith((".txt", ".text"))


def _text(value: str | None) -> str:
    """What was typed; a box that nobody touched may hold nothing at all."""
    return (value or "").strip()


def _number(what: str, value: float | None) -> float:
    if value is None:
        raise OptionError(f"{what} is missing: write a number")
    return float(value)


def _whole(what: str, value: float | None, *, least: int) -> int:
    number = _number(what, value)
    if not number.is_integer() or number < least:
        raise OptionError(f"{what} must be a whole number, {least} or more; it was {number:g}")
    return int(number)


def _public_samples(samples: int | None, config: EvaluationConfig) -> int:
    one_by_one = config.metric == "pseudo-perplexity"
    most = PUBLIC_TEXTS_ONE_BY_ONE if one_by_one else PUBLIC_TEXTS
    if samples is None or samples > most:
        raise OptionError(
            f"this public page measures at most {most} texts "
            f"{'by pseudo-perplexity ' if one_by_one else ''}at a time; "
            f"{'all' if samples is None else samples} were asked for. Run it on your own machine "
            "for more"
        )
    return samples


def _public_config(config: EvaluationConfig) -> EvaluationConfig:
    if config.max_tokens is None or config.max_tokens > PUBLIC_TOKENS:
        raise OptionError(
            f"this public page cuts texts at {PUBLIC_TOKENS} tokens or fewer: set max tokens to "
            f"{PUBLIC_TOKENS}; it was {config.max_tokens or 'the limit of the model'}"
        )
    return config


def source_of(texts: Mapping[str, Any]) -> TextSource:
    """The texts of a stored run.

    Raises:
        DataError: if the run does not say enough to find them again.
    """
    try:
        return TextSource(**{name: texts[name] for name in TextSource.__dataclass_fields__})
    except KeyError as error:
        raise DataError(
            "the run does not say where its texts come from, so it cannot be resumed here: use "
            "the command line with the same texts"
        ) from error
