"""What all visitors of a page share: loaded models and recent answers.

Visitors hold only small values (a text, a model's name), so ten visitors of one model load it once.
Every tab calls its models through here, within the same limits.
"""

import inspect
import pickle
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from fillmask_ui.errors import ModelError, OptionError, TextError
from fillmask_ui.models import ModelStore, available_models
from fillmask_ui.models.loading_progress import ProgressCallback
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.runs import RunStore
from fillmask_ui.ui.job import Jobs, Report, SharedJobs, Slots

# Far above any model's token limit, far below what would keep a tokenizer busy.
MAX_CHARACTERS = 50_000
MAX_WORDS = 100
# Tokens a model may read to score words of several sub-tokens while someone waits.
MAX_WORK = 200_000

Kept = TypeVar("Kept")


class Session:
    """Models and answers behind one page; safe to use from many threads.

    Args:
        default_model: reference of the model that a new visitor sees.
        public: offer only the models at hand, so that strangers can neither fill the disk with
            downloads nor probe for files.
        settings: what the command that starts the page hands to features, by name.
    """

    def __init__(
        self,
        store: ModelStore,
        default_model: str = "embedded",
        *,
        public: bool = False,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.store = store
        self.default_model = default_model
        self.public = public
        self.settings = dict(settings or {})
        # Visitor's id -> the runs they may see.
        self.stored_runs: Callable[[str], RunStore] | None = None
        self._shared: dict[Callable[..., Any], Any] = {}
        self._lock = threading.Lock()
        self._answers = Answers()
        self._loading = SharedJobs()
        # Slow work takes turns, so that quick answers stay quick. What takes minutes has turns of
        # its own, and pauses between its steps for what takes seconds, such as a lesson's figure.
        self.short_jobs = SharedJobs([Slots()], doing="Computing…", most=32, patience_seconds=10.0)
        self._long_jobs = SharedJobs(
            [Slots()],
            doing="Computing…",
            most=32,
            patience_seconds=10.0,
            pauses_for=self.short_jobs,
        )

    def shared(self, kind: Callable[["Session"], Kept]) -> Kept:
        """`kind(self)`, made once: the state of a tab that all its visitors share."""
        with self._lock:
            if kind not in self._shared:
                self._shared[kind] = kind(self)
            return self._shared[kind]

    def leave(self, opened: str) -> None:
        """A page was closed or reloaded, by its session of Gradio: jobs of its tabs go on."""
        for shared in [*self._shared.values()]:
            if isinstance(shared, Jobs):
                shared.forget(opened)

    def model(
        self, choice: ModelChoice | str, on_progress: ProgressCallback | None = None
    ) -> MaskedLM:
        """The loaded model of a choice or reference; the default model for a blank one.

        A public page ignores the options of a choice.

        Raises:
            ModelError: if it cannot be loaded, or is not offered on a public page.
            NetworkError: if it has to be downloaded and cannot be.
        """
        choice = ModelChoice(choice) if isinstance(choice, str) else choice
        reference = choice.reference.strip() or self.default_model
        if not self.public:
            return self.store.get(replace(choice, reference=reference), on_progress)
        if reference not in (offered := self.offered()):
            raise ModelError(
                f"{reference!r} is not offered on this public page; offered: {', '.join(offered)}"
            )
        return self.store.get(reference, on_progress)

    def offered(self) -> list[str]:
        """References of the models at hand, the default one first; a public page has no others."""
        at_hand = (model.reference for model in available_models())
        return [*dict.fromkeys([self.default_model, *at_hand])]

    def model_soon(self, choice: ModelChoice | str) -> MaskedLM:
        """`model` without waiting for a load: callers ask again while it is `Unfinished`."""
        return self._loading.result(choice, lambda report: self.model(choice, report))

    def ask(
        self,
        models: MaskedLM | tuple[MaskedLM, MaskedLM],
        function: Callable[..., Kept],
        *arguments: Any,
        **options: Any,
    ) -> Kept:
        """A function of one or two models, as `model` gives them, and its answer cached.

        It runs within the page's limits: texts (strings) and words (`candidates`, `words`) are
        bounded, and so is its `most_work`, if it takes one. Arguments are hashable; `top_k=None`,
        whole vocabularies, is not kept.

        Raises:
            TextError, OptionError: as of `check_text` and the function.
        """
        model_pair = models if isinstance(models, tuple) else (models,)
        words = (*options.get("candidates", ()), *options.get("words", ()))
        for text in (argument for argument in arguments if isinstance(argument, str)):
            check_text(text, words)
        named_options = sorted(
            option for option in options.items() if option[1] != ()
        )  # no words: one key
        key = self._key(model_pair, (function, arguments, *named_options))
        if (cached := self._answers.get(key)) is not None:
            return cached
        if "most_work" in inspect.signature(function).parameters:
            options |= {"most_work": MAX_WORK}
        answer = function(*model_pair, *arguments, **options)
        if options.get("top_k", 1) is not None:
            self._answers.keep(key, answer)
        return answer

    def further(
        self, model: MaskedLM, question: tuple, start: int, grow: Callable[[MaskedLM, Any], Kept]
    ) -> Kept:
        """A cached answer that grows in windows of words, its `words`, with word `start` in it.

        `question` is the cache key, beside the model; `grow` makes the answer with more words of
        the model and the answer so far, None at first.
        """
        key = self._key((model,), question)
        cached: Any = self._answers.get(key)
        if cached is None or len(cached.words) <= start:
            cached = grow(model, cached)
            self._answers.keep(key, cached)
        return cached

    def slowly(
        self,
        model: MaskedLM,
        question: tuple,
        work: Callable[[Report], Kept],
        *,
        title: str = "",
        long: bool = False,
    ) -> Kept:
        """An answer that takes many passes of a model; callers ask again while it is `Unfinished`.

        `question` is the cache key, beside the model: `work` runs once for all visitors who ask it.
        Whoever waits for it is told its `title`. A `long` one, of minutes, lets shorter ones go
        first.
        """
        key = self._key((model,), question)
        if (cached := self._answers.get(key)) is not None:
            return cached

        def compute(report: Report) -> Kept:
            answer = work(report)
            self._answers.keep(key, answer)
            return answer

        jobs = self._long_jobs if long else self.short_jobs
        return jobs.result(key, compute, title)

    def _key(self, models: Sequence[MaskedLM], question: tuple) -> tuple:
        return (*((str(model.signature), id(model)) for model in models), *question)


def check_text(text: str, words: Sequence[str] = ()) -> None:
    """A `TextError` or `OptionError` for what would keep a tokenizer or a model busy for long."""
    if len(text) > MAX_CHARACTERS:
        raise TextError(
            f"the text has {len(text):,} characters and this page takes at most "
            f"{MAX_CHARACTERS:,}: shorten it; nothing was cut"
        )
    if len(words) > MAX_WORDS:
        raise OptionError(
            f"there are {len(words):,} candidate words and this page scores at most "
            f"{MAX_WORDS} at once: leave some out"
        )


MOST_ANSWERS = 128
MOST_BYTES = 26_000_000  # of all answers


class Answers:
    """A cache of answers that drops the least recently used first; thread-safe."""

    def __init__(self) -> None:
        self._answers: OrderedDict[tuple, tuple[Any, int]] = OrderedDict()  # and its size
        self._lock = threading.Lock()

    def get(self, question: tuple) -> Any:
        with self._lock:
            if question not in self._answers:
                return None
            self._answers.move_to_end(question)
            return self._answers[question][0]

    def keep(self, question: tuple, answer: Any) -> None:
        """Store an answer; drop old ones if full, but never this one."""
        arrays: list[pickle.PickleBuffer] = []
        pickled = pickle.dumps((question, answer), protocol=5, buffer_callback=arrays.append)
        # Records take about four times the memory of what they are pickled to.
        size = 4 * len(pickled) + sum(array.raw().nbytes for array in arrays)
        with self._lock:
            self._answers[question] = answer, size
            total = sum(size for _, size in self._answers.values())
            while len(self._answers) > MOST_ANSWERS or (total > MOST_BYTES and total > size):
                _, (_, dropped) = self._answers.popitem(last=False)
                total -= dropped
