"""What all visitors of one page share: the loaded models and the latest answers.

Visitors hold only small values (a text, a model's name); models stay here, so ten visitors of
one model cost one model.
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fillmask_ui.errors import FillmaskError, ModelError, OptionError, TextError
from fillmask_ui.filling import fill, score_candidates

if TYPE_CHECKING:
    from fillmask_ui.models import AvailableModel, ModelStore
    from fillmask_ui.protocol import MaskedLM
    from fillmask_ui.records import Filling, ScoredWord

# Far above any model's limit in tokens, far below what would keep a tokenizer busy.
MAX_CHARACTERS = 50_000
MAX_WORDS = 100
_KEPT_FILLINGS = 128


class Session:
    """Models and answers behind one page; safe to use from many threads.

    Args:
        store: of loaded models, shared by all visitors.
        default_model: reference of the model that a new visitor sees.
        public: only the models at hand may be asked for, so that strangers can neither fill the
            disk with downloads nor probe for files.
    """

    def __init__(
        self, store: ModelStore, default_model: str = "embedded", *, public: bool = False
    ) -> None:
        self.store = store
        self.default_model = default_model
        self.public = public
        self._fillings: OrderedDict[tuple, Filling] = OrderedDict()
        self._lock = threading.Lock()

    def preload(self) -> None:
        """Begin to load the default model, so that the first visitor need not wait for it."""

        def load() -> None:
            # Whoever then asks for the model is told what is wrong with it.
            with contextlib.suppress(FillmaskError):
                self.store.get(self.default_model)

        threading.Thread(target=load, daemon=True, name="preload").start()

    def models(self) -> tuple[AvailableModel, ...]:
        """What is at hand without a network."""
        from fillmask_ui.models import available_models

        return tuple(available_models())

    def model(self, reference: str, on_progress: Callable[..., None] | None = None) -> MaskedLM:
        """The loaded model of a reference.

        Args:
            reference: as `load_model` takes it; blank for the default model.
            on_progress: told how far loading is.

        Raises:
            ModelError: if it cannot be loaded, or is not offered on a public page.
            NetworkError: if it has to be fetched and cannot be.
        """
        reference = (reference or "").strip() or self.default_model
        if self.public:
            offered = [self.default_model, *(model.reference for model in self.models())]
            if reference not in offered:
                raise ModelError(
                    f"{reference!r} is not offered on this public page; offered: "
                    f"{', '.join(dict.fromkeys(offered))}"
                )
        return self.store.get(reference, on_progress=on_progress)

    def fill(
        self, model: MaskedLM, text: str, *, top_k: int | None, words: Sequence[str] = ()
    ) -> Filling:
        """`fill`, remembered: a change of unit or of the mask shown costs no model call."""
        check_text(text)
        check_words(words)
        key = (str(model.signature), id(model), text, top_k, tuple(words))
        with self._lock:
            if key in self._fillings:
                self._fillings.move_to_end(key)
                return self._fillings[key]
        filling = fill(model, text, top_k=top_k, candidates=words)
        if top_k is not None:  # whole vocabularies are too large to keep
            with self._lock:
                self._fillings[key] = filling
                while len(self._fillings) > _KEPT_FILLINGS:
                    self._fillings.popitem(last=False)
        return filling

    def score(
        self, model: MaskedLM, text: str, words: Sequence[str]
    ) -> tuple[tuple[ScoredWord, ...], ...]:
        """`score_candidates` within the page's limits."""
        check_text(text)
        check_words(words)
        return score_candidates(model, text, words)


def check_text(text: str) -> None:
    """Refuse what no model could take, before any tokenizer sees it.

    Raises:
        TextError: for too many characters.
    """
    if len(text) > MAX_CHARACTERS:
        raise TextError(
            f"the text has {len(text):,} characters and this page takes at most "
            f"{MAX_CHARACTERS:,}: shorten it; nothing was cut"
        )


def check_words(words: Sequence[str]) -> None:
    """Refuse more candidate words than can be scored while someone waits.

    Raises:
        OptionError: for too many words.
    """
    if len(words) > MAX_WORDS:
        raise OptionError(
            f"there are {len(words):,} candidate words and this page scores at most "
            f"{MAX_WORDS} at once: leave some out"
        )
