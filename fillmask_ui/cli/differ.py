"""`fillmask-ui differ`: the sentences on which two models differ most."""

from contextlib import closing

from fillmask_ui.cli.options import BASELINE, IN_BITS, JSON, compared, option, with_options
from fillmask_ui.cli.printed import print_search
from fillmask_ui.cli.terminal import count_bar, load, print_json, tell, warn
from fillmask_ui.comparing.divergence_search import WORDS, Search, divergent_sentences
from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.records import ROLES
from fillmask_ui.texts import TextChoice, open_texts


@with_options
def differ(
    *,
    model: ModelChoice,
    baseline: str | None = BASELINE,
    texts: TextChoice,
    sentences: int = option(200, "Sentences to search.", min=1, metavar="N"),
    words: int = option(
        WORDS, "Words to hide in each sentence, one at a time.", min=1, metavar="N"
    ),
    most: int = option(20, "Sentences to list.", min=1, metavar="N"),
    bits: bool = IN_BITS,
    as_json: bool = JSON,
) -> None:
    """Find the sentences on which two models differ most."""
    choices = compared(model, baseline)
    if len(choices) < 2:
        raise OptionError("differ compares two models: name the reference with --baseline")
    search: Search | None = None
    stopped: KeyboardInterrupt | None = None
    with open_texts(texts.source(), warn=warn) as examples:
        reference, candidate = models = [load(choice) for choice in choices]
        searches = divergent_sentences(
            reference, candidate, examples, most=most, words_per_sentence=words
        )
        try:
            with closing(searches), count_bar(description="sentences", total=sentences) as show:
                for search in searches:
                    line = f"{search.looked:,} of {sentences:,} sentences"
                    flipped = f"{search.flipped} top words changed"
                    show(line, completed=search.looked, total=sentences, status=flipped)
                    if search.looked == sentences:
                        break
        except KeyboardInterrupt as interrupt:
            stopped = interrupt  # the search so far is printed
            tell(f"\nstopped after {search.looked if search else 0:,} sentences")
    if search is not None and search.looked:
        if as_json:
            described = {
                role: {"model": model.signature.name, "signature": str(model.signature)}
                for role, model in zip(ROLES, models, strict=True)
            }
            print_json(described | search.to_dict())
        else:
            print_search(search, models, "bits" if bits else "nats")
    elif stopped is None:
        raise DataError(
            f"none of {search.left_out if search else 0:,} sentences could be compared: give texts "
            "of several words that fit into both models"
        )
    if stopped is not None:
        raise stopped
