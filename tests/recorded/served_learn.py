"""What browsers ask of the Learn tab, as `served_cases.py` says it of the others."""

from recorded.served_cases import NONE, ONE, Case


def figures(model: str = "", **cases: tuple[str, dict[str, str]]) -> dict[str, Case]:
    return {
        name: ("learn", "figure", {"model": model, "name": figure, "values": values})
        for name, (figure, values) in cases.items()
    }


CLASS = {"word_0": "table", "percent_0": "40", "word_1": "river", "percent_1": "30"}
GAP = {"sentence": ONE, "truth": "table"}
SIDES = {"text": "The cat sat on the [MASK] and looked at the bird.", "word": "table"}
TEA = {"text": NONE}
PAIR = {"first": "The cat sat on the table.", "second": "It looked at the bird."}
SENSES = {
    "word": "table",
    "sentences": "1: The cat sat on the table.\n1: The table is old.\n"
    "2: A table of books.\n2: We read the table.",
}
COFFEE = {"sentence": "I drink a cup of [MASK] every morning.", "truth": "coffee"}

LEARN: dict[str, dict[str, Case]] = {
    "learn-without-model": figures(
        curve=("loss_curve", {}),
        curve_low=("loss_curve", {"percent": "0.001"}),
        one_hot=("one_hot", {}),
        one_hot_animals=("one_hot", {"example": "animals", "true_animals": "2"}),
        compare=("compare_distributions", {}),
        compare_zero=("compare_distributions", {"zero": "1", "unit": "bits"}),
        compare_scaled=("compare_distributions", {"p": "2, 1, 1", "q": "1,1,2", "scale": "1"}),
        soft=("soft_truth", {}),
        soft_moved=("soft_truth", {"p": "1", "q": "0.02"}),
        near=("near_misses", {}),
        near_moved=("near_misses", {"a": "99", "b": "300"}),
        changes=("published_changes", {}),
        changes_own=("published_changes", {"order": "change", "loss": "2,5", "pass_below": "3%"}),
    ),
    "learn-guess": figures(
        "table",
        nobody=("guess", {"which": "own", **GAP}),
        revealed=(
            "guess",
            {
                "which": "own",
                **GAP,
                **CLASS,
                "reveal": "1",
            },
        ),
    ),
    "learn-loss": figures(
        "table",
        logits=("softmax_table", GAP),
        all_columns=("softmax_table", {**GAP, "columns": "4", "added": "largest"}),
        exponentials=("softmax_table", {**GAP, "columns": "2", "added": "5"}),
        hot=("loss_temperature", {**GAP, "temperature": "3"}),
        plain=("loss_temperature", GAP),
        units=("loss_units", GAP),
    ),
    "learn-sides": figures(
        "table",
        sides=("sides", SIDES),
        cut=("cut_or_hidden", {**SIDES, "kept": "left"}),
        cut_right=("cut_or_hidden", {**SIDES, "kept": "right"}),
        losses=("side_losses", TEA),
    ),
    "learn-masking": figures(
        "table",
        shares=("mask_shares", {**TEA, "rate": "30"}),
        kinds=("mask_kinds", {"text": "The cat sat on the table."}),
        ledger=("ledger", {**TEA, "seed": "4"}),
        ledger_all=("ledger", {**TEA, "seed": "5", "all": "1", "evaluate": "1"}),
        ledger_more=("ledger", {**TEA, "seed": "4", "lines": "1", "more": "1"}),
        ledger_kinds=("ledger_kinds", {"text": "The cat sat on the table."}),
        ledger_mix=("ledger_mix", {"text": "The cat sat on the table.", "unchanged": "40"}),
    ),
    "learn-accuracy": figures(
        "table",
        truth=("model_truth", {"text": ONE, "word": "table"}),
        temperatures=("two_temperatures", {}),
        temperatures_moved=("two_temperatures", {"a": "0.7", "b": "9"}),
        tokens=("token_losses", {}),
        tokens_noisy=("token_losses", {"second": "noisy", "b": "1"}),
    ),
    "learn-certainty": figures(
        "table",
        seeds=("twenty_seeds", {}),
        seeds_one=("twenty_seeds", {"seed": "7"}),
        texts=("more_texts", {"order": "3"}),
        paired=("paired_difference", {"second": "noisy"}),
        paired_same=("paired_difference", {"second": "same"}),
    ),
    "learn-senses": figures(
        "table",
        next=("next_sentence", PAIR),
        pretraining=("pretraining_loss", PAIR),
    ),
    "learn-embedded": figures(
        "embedded",
        guess=("guess", {"word_0": "morning", "percent_0": "30", "reveal": "1"}),
        rounds=("guess_rounds", {"guesses_0": "tea 3, milk 2", "score": "1"}),
        table=("softmax_table", {**COFFEE, "columns": "4"}),
        temperature=("loss_temperature", {**COFFEE, "temperature": "2"}),
        sides=("sides", {}),
        cut=("cut_or_hidden", {}),
        ledger=("ledger", {"all": "1"}),
        truth=("model_truth", {}),
        temperatures=("two_temperatures", {}),
    ),
    "learn-senses-embedded": figures(
        "embedded",
        cosines=("word_cosines", {}),
        rogue=("rogue_dimensions", {}),
        map=("sense_map", {}),
        nearest=("nearest_sense", {}),
        layers=("layer_lens", {}),
        next=("next_sentence", {"truth": "1"}),
        pretraining=("pretraining_loss", {"probability": "0.9"}),
    ),
    "learn-exercises": {
        **{
            chapter: ("learn", "exercises", {"chapter": chapter, "seed": seed})
            for chapter, seed in (("loss", 7), ("accuracy", 1), ("<b>", 1))
        },
        **{
            f"{chapter} {number} {response}": (
                "learn",
                "check",
                {"chapter": chapter, "seed": 7, "number": number, "response": response},
            )
            for chapter, number, response in (
                ("loss", 1, "1.609"),
                ("loss", 1, "-1.609"),
                ("loss", 1, "9"),
                ("loss", 3, "0"),
                ("loss", 3, "2"),
                ("loss", 9, "1"),
                ("accuracy", 3, "2,3,1,0"),
                ("accuracy", 3, "0,1,2,3"),
                ("guess", 1, "<b>?"),
            )
        },
        "sheet": ("learn", "sheet", {"seed": 7, "solutions": True}),
    },
}
