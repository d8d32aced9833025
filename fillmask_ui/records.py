"""The frozen dataclasses that pass between rooms; nothing in them is rounded.

Axes: T tokens of one text, V vocabulary, K candidates. Probabilities are normalised over the whole
vocabulary. A `token` is the vocabulary's own string (`##ing`, `Ġthe`, `▁der`), a `word` the same
without the tokenizer's marks.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, cast

from fillmask_ui.files import visible


@dataclass(frozen=True)
class InJson:
    """How `schema` reads a field whose type does not say it; stands in its `Annotated` type."""

    read: Callable[[Any], Any]  # of the value in JSON
    stored: Any  # type of that value

    def __get_pydantic_core_schema__(self, kind: Any, handler: Any) -> dict[str, Any]:
        """What pydantic asks, which `schema` alone imports."""
        function = {"type": "no-info", "function": self.read}
        schema = handler.generate_schema(self.stored)
        return {"type": "function-after", "function": function, "schema": schema}


def excerpt(text: str, most: int = 60) -> str:
    """The beginning of a text in quotes, for a `repr` of one line.

    >>> excerpt("The cat sat on the mat.", 15)
    "'The cat sat on…'"
    """
    return repr(text if len(text) <= most else f"{text[:most].rstrip()}…")


def counted(count: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "mask"), counted(2, "mask")
    ('1 mask', '2 masks')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


@dataclass(frozen=True)
class Span:
    """Half-open range of characters [start, end) in a text."""

    start: int
    end: int


@dataclass(frozen=True)
class Encoding:
    """One text as token ids, special tokens included."""

    text: str  # the text that was encoded, masks written as the model's own mask token
    ids: tuple[int, ...]  # T token ids
    tokens: tuple[str, ...]  # T raw vocabulary strings
    spans: tuple[Span, ...]  # T ranges in `text`; empty where a token has no characters
    word_ids: tuple[int | None, ...]  # T indices of a token's word; None for masks and `special`
    special: tuple[bool, ...]  # T, true for what the tokenizer adds ([CLS], </s>), not for masks

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Encoding({excerpt(self.text)}, {counted(len(self), 'token')})"

    def part(self, tokens: slice) -> "Encoding":
        """Some of its tokens, of the same text."""
        columns = {name: column[tokens] for name, column in vars(self).items() if name != "text"}
        return Encoding(self.text, **columns)


@dataclass(frozen=True)
class ModelSignature:
    """Every choice that shapes a model's numbers; two equal signatures give equal numbers."""

    name: str  # as the user referred to it, e.g. `embedded`, `org/model@rev`.
    architecture: str  # Hugging Face `model_type`, e.g. `bert`.
    runtime: str  # `onnx` or `torch`
    device: str  # execution provider or torch device, e.g. `CPUExecutionProvider`, `cpu`.
    precision: str  # of the stored weights, e.g. `float32`, `float16`, `int8`.
    sha256: str  # hash of the weights file (of all of them, sorted, where there are several)
    parameters: int | None  # number of weights, where known
    size_bytes: int  # on disk, of the weights that it reads: of a file it shares, its part
    vocabulary_size: int  # V, the width of the logits
    max_tokens: int  # longest text in tokens, special tokens included
    versions: Mapping[str, str] = field(default_factory=dict)  # of the packages that took part
    cpu_features: tuple[str, ...] = ()  # e.g. `avx512_vnni`; int8 results depend on them.
    notes: tuple[str, ...] = ()  # what a reader should know (size mismatch, ...)
    config_sha256: str = ""  # of the values of config.json
    tokenizer_sha256: str = ""  # of the tokenizer's files, or of the vocabulary of one in memory
    settings: Mapping[str, str] = field(default_factory=dict)  # of the runtime, without defaults

    def __str__(self) -> str:
        parts = {
            "model": visible(self.name),
            "arch": self.architecture,
            "runtime": self.runtime,
            "device": self.device,
            "precision": self.precision,
            "sha256": self.sha256[:12],
            "config": self.config_sha256[:12],
            "tokenizer": self.tokenizer_sha256[:12],
            "V": self.vocabulary_size,
            **self.settings,
            **dict(sorted(self.versions.items())),
            "cpu": "+".join(self.cpu_features),
        }
        return "|".join(f"{name}:{part}" for name, part in parts.items() if part != "")

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Candidate:
    """One token of the vocabulary at one hidden position."""

    rank: int  # 1 for the most probable token of the vocabulary
    token_id: int  # in [0, V)
    token: str  # raw vocabulary string
    word: str  # `token` without the tokenizer's marks
    probability: float  # softmax over all V tokens
    nll_nats: float  # -ln probability

    @property
    def nll_bits(self) -> float:
        return self.nll_nats / math.log(2)


@dataclass(frozen=True)
class ScoredPart:
    """One sub-token of a scored word, given those before it."""

    token_id: int
    token: str
    nll_nats: float


@dataclass(frozen=True)
class ScoredWord:
    """A word that the user asked about, at one mask.

    A word of n sub-tokens widens the mask to n; sub-token j is scored with those before it
    filled in and those after it hidden.
    """

    word: str  # as typed
    nll_nats: float  # -ln P(word), the sum over `parts`
    probability: float
    rank: int | None  # among all V tokens where the word is one token, else None
    parts: tuple[ScoredPart, ...]

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(part.token_id for part in self.parts)

    @property
    def nll_bits(self) -> float:
        return self.nll_nats / math.log(2)


@dataclass(frozen=True)
class MaskFilling:
    """What the model says at one mask."""

    position: int  # index of the mask in the token sequence, special tokens counted
    entropy_nats: float  # of the distribution over all V tokens
    candidates: tuple[Candidate, ...]  # the K best, best first
    scored: tuple[ScoredWord, ...] = ()  # the words that the user asked about, in the order asked

    @property
    def perplexity(self) -> float:
        """e^H: the number of equally likely tokens with the same entropy."""
        return math.exp(self.entropy_nats)


@dataclass(frozen=True)
class JointPart:
    """One factor of a joint filling: the token at `position`, given all parts before it."""

    position: int
    token_id: int
    token: str
    word: str
    nll_nats: float


@dataclass(frozen=True)
class JointFilling:
    """All masks of a text filled together."""

    text: str  # the filled text
    nll_nats: float  # -ln of the joint probability, the sum over `parts` (chain rule)
    parts: tuple[JointPart, ...]  # the factors, each conditioned on those before it

    @property
    def log_probability_nats(self) -> float:
        return -self.nll_nats

    @property
    def probability(self) -> float:
        return math.exp(-self.nll_nats)


class Displayed:
    """A record that notebooks show, and that is a table and a chart as well."""

    # A function from (`frame`, `figure` or `html`; record) to that form of the record, which
    # `fillmask_ui/__init__.py` sets from above.
    display: ClassVar[Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values of a dataclass, but for numbers that JSON does not have."""
        return asdict(cast("Any", self))

    def to_json(self, indent: int | None = None) -> str:
        """`to_dict` as JSON; an infinite NLL (an impossible token) becomes null."""
        return json.dumps(finite(self.to_dict()), ensure_ascii=False, indent=indent)

    def to_pandas(self) -> Any:
        """The record as a `pandas.DataFrame`; numbers keep every digit."""
        return self.display("frame", self)

    def figure(self) -> Any:
        """Its chart, a `plotly.graph_objects.Figure`."""
        return self.display("figure", self)

    def _repr_html_(self) -> str:
        return str(self.display("html", self))


@dataclass(frozen=True)
class Filling(Displayed):
    """What a model says about one text with masks."""

    encoding: Encoding
    signature: ModelSignature
    masks: tuple[MaskFilling, ...]  # from left to right, each independent of the others
    joint: tuple[JointFilling, ...] = ()  # the best fillings of all masks; empty for a single one

    def __repr__(self) -> str:
        best = [mask.candidates[0] for mask in self.masks]
        words = ", ".join(f"{first.word!r} {first.probability:.1%}" for first in best)
        masks = counted(len(self.masks), "mask")
        return f"Filling({excerpt(self.encoding.text)}, {masks}: {words})"

    def to_records(self) -> list[dict[str, Any]]:
        """The candidates of all masks as the fill-mask pipeline of transformers gives them.

        Each has `score`, `token`, `token_str` and `sequence`, the text with this token in place of
        its mask; also `mask`, which counts from 0. Words that were asked about are not among them.
        """
        return [
            {
                "score": candidate.probability,
                "token": candidate.token_id,
                "token_str": candidate.word,
                "sequence": self._with_token(mask, candidate),
                "mask": number,
            }
            for number, mask in enumerate(self.masks)
            for candidate in mask.candidates
        ]

    def _with_token(self, mask: MaskFilling, candidate: Candidate) -> str:
        """The text with a candidate in place of a mask, an ending joined to the word before it."""
        text, mask_token = self.encoding.text, self.encoding.tokens[mask.position]
        # Some tokenizers count the blank before a mask to its span.
        start = text.index(mask_token, self.encoding.spans[mask.position].start)
        left, right = text[:start], text[start + len(mask_token) :]
        candidates = (best.token for each in self.masks for best in each.candidates)
        marks_beginnings = any(token[:1] in ("Ġ", "▁") for token in candidates)
        if candidate.token.startswith("##") or (
            marks_beginnings and candidate.token[:1] not in ("Ġ", "▁")
        ):
            left = left.rstrip()
        return left + candidate.word + right

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values; the shape that `fillmask-ui predict --json` prints."""
        return {
            "text": self.encoding.text,
            "model": self.signature.name,
            "signature": str(self.signature),
            "masks": [asdict(mask) for mask in self.masks],
            "joint": [
                {**asdict(joint), "log_probability_nats": joint.log_probability_nats}
                for joint in self.joint
            ],
        }


def finite(value: Any) -> Any:
    """The same value with null for numbers that JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


ROLES = ("reference", "candidate")  # of two models, or of two sentences


@dataclass(frozen=True)
class Example:
    """One text of a data set."""

    id: int  # position in the data set, from 0; with the seed it determines the masks
    text: str  # raw; of a minimal pair the better sentence
    worse: str | None = None  # the other sentence of a pair
    group: str = ""  # whose figures it counts for too: a domain, the phenomenon of a pair, ...
    given: str = ""  # a text before it, of a pair before both, that is read and not scored

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.text,) if self.worse is None else (self.text, self.worse)

    @property
    def content(self) -> str:
        """All that the numbers of a stored row rest on, for its checksum."""
        return "\0".join([*self.texts, self.given] if self.given else self.texts)


@dataclass(frozen=True)
class Progress:
    """How far long work is."""

    message: str  # what is done now
    fraction: float | None = None  # part done, in [0, 1]; None if unknown


@dataclass(frozen=True)
class SkippedText:
    """A text that could not be measured, and why, in words to count by."""

    id: int
    reason: str
