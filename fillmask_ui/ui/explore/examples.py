"""Example sentences in sets, each with a question to the class and the claims that it rests on.

A sentence is here because the embedded model makes its point. What that point is stands beside the
sentence as claims, and a test puts every one of them to the model as it ships.
"""

from fillmask_ui.ui.explore.example import (
    OTHER,
    Above,
    Among,
    Example,
    ExampleSet,
    First,
    Likelier,
    MostSurprising,
    SubTokens,
)

_START = ExampleSet(
    "Start",
    (
        Example(
            "a cup of …",
            "I drink a cup of [MASK] every morning.",
            "Which word would you write here, and which one second?",
            (First("tea"), Among(("tea", "coffee", "milk"), 3)),
        ),
        Example(
            "very cold?",
            "Water freezes when it gets very [MASK].",
            "The first word is right. Why does its opposite come second?",
            (First("cold"), Among(("cold", "hot"), 2)),
            hidden=("cold",),
        ),
        Example(
            "too hot?",
            "The boy did not eat the soup because it was too [MASK].",
            "Two opposites fit. Which one does the model prefer?",
            (Among(("hot", "cold"), 2), Above("hot", "cold")),
        ),
        Example(
            "two masks",
            "The [MASK] barked and the [MASK] ran away.",
            "Each mask is guessed on its own. Who barked, and who ran away?",
            (First("dog"), First("dog", mask=1)),
        ),
    ),
)
_SURPRISE = ExampleSet(
    "Surprise",
    (
        Example(
            "to school by …",
            "The children went to school by elephant.",
            "No word is hidden. Which word surprises the model most?",
            (MostSurprising("elephant"),),
        ),
        Example(
            "bread and lions",
            "The baker sold bread, cakes and lions.",
            "Which word would you replace, and what did the model expect there?",
            (MostSurprising("lions"),),
        ),
        Example(
            "the sun sets",
            "The sun rises in the morning and sets in the fridge.",
            "One word makes this sentence odd. Is it the most surprising one?",
            (MostSurprising("fridge"),),
        ),
        Example(
            "bread with socks",
            "He spread the warm bread with socks.",
            "Readers' brains react to the last word of this sentence. Does the model?",
            (MostSurprising("socks"),),  # Kutas and Hillyard, Science 207 (1980)
        ),
    ),
)
_GRAMMAR = ExampleSet(
    "Grammar",
    (
        Example(
            "keys and cabinet",
            "The keys to the cabinet [MASK] on the table.",
            "Does the verb agree with keys or with cabinet?",
            (First("are"), Above("are", "is", times=50), Above("is", "are", OTHER, 50)),
            words="are, is",
            other="The key to the cabinets [MASK] on the table.",
        ),
        Example(
            "yesterday, tomorrow",
            "Yesterday she [MASK] to the market.",
            "How does the day change the form of the verb?",
            (First("went"), First("go", OTHER)),
            words="went, go",
            other="Tomorrow she will [MASK] to the market.",
        ),
        Example(
            "she hurt …",
            "The girl hurt [MASK] when she fell.",
            "Which of himself, herself and themselves fits the girl?",
            (First("herself"), Above("herself", "himself", times=10)),
            words="herself, himself, themselves",
        ),
        Example(
            "have never …",
            "I have never [MASK] such a big dog.",
            "Which form of a verb follows have?",
            (First("seen"), Above("seen", "saw", times=10), Above("seen", "see", times=10)),
            words="seen, saw, see",
        ),
        Example(
            "neither …",
            "Neither the teacher [MASK] the students knew the answer.",
            "Which word at the start decides what must come here?",
            (First("nor"), First("and", OTHER), Above("nor", "or", times=50)),
            words="nor, or, and",
            other="Both the teacher [MASK] the students knew the answer.",
        ),
    ),
)
_FACTS = ExampleSet(
    "Facts",
    (
        Example(
            "capital of France",
            "The capital of France is [MASK].",
            "How sure is the model? Change France to Japan or Italy.",
            (First("paris"), Above("paris", "naples", times=10)),
            hidden=("Paris",),
        ),
        Example(
            "capital of England",
            "The capital of England is [MASK].",
            "This one goes wrong. What do the first words have in common?",
            (Above("manchester", "london", times=1.2), Among(("oxford", "london"), 5)),
            hidden=("London",),
        ),
        Example(
            "a triangle",
            "A triangle has three [MASK].",
            "Which other answers would you accept?",
            (First("sides"), Among(("sides", "angles", "corners"), 3)),
            hidden=("sides",),
        ),
        Example(
            "Romeo and …",
            "Romeo and [MASK] was written by William Shakespeare.",
            "Hide more words, one by one: when does the model no longer know?",
            (First("juliet"),),
            hidden=("Juliet",),
        ),
        Example(
            "can, cannot",
            "A bird can [MASK].",
            "Does the model understand the word cannot?",
            (First("fly"), First("fly", OTHER)),  # Kassner and Schütze, arXiv:1911.03343
            words="fly, swim, read",
            other="A bird cannot [MASK].",
        ),
    ),
)
_AMBIGUITY = ExampleSet(
    "Ambiguity",
    (
        Example(
            "which bank?",
            "The bank was full of [MASK].",
            "What do three more words change?",
            (First("money"), First("water", OTHER), Likelier("money", 20)),
            words="money, water, fish",
            other="The bank of the river was full of [MASK].",
        ),
        Example(
            "what is light?",
            "The bag is light, it is not [MASK].",
            "Light has two opposites. Which one belongs to which sentence?",
            (First("heavy"), First("dark", OTHER)),
            words="heavy, dark",
            other="The room is light, it is not [MASK].",
        ),
        Example(
            "what is caught?",
            "The fisherman caught the [MASK].",
            "The verb is the same. What decides what is caught?",
            (First("fish"), First("ball", OTHER)),
            words="fish, ball, thief",
            other="The goalkeeper caught the [MASK].",
        ),
        Example(
            "what is short?",
            "The building is short, not [MASK].",
            "Two opposites of short: which one fits a building better?",
            (Among(("tall", "long"), 3),),
            words="tall, long",
        ),
        Example(
            "what does it mean?",
            "The box does not fit in the car because it is too [MASK].",
            "What is too big here, and what too small: the box or the car?",
            (Among(("big", "small"), 5),),  # after Winograd's schemas
            words="big, small",
        ),
    ),
)
_BIAS = ExampleSet(
    "Bias",
    (
        Example(
            "nurse, doctor",
            "[MASK] is a nurse.",
            "How does the job move the guess between he and she?",
            (First("he", OTHER), Likelier("she", 2.5)),
            words="she, he",
            other="[MASK] is a doctor.",
        ),
        Example(
            "dancer, soldier",
            "The dancer said that [MASK] was late.",
            "Nothing tells who they are. Why do the guesses differ?",
            (First("she"), First("he", OTHER), Likelier("she", 10)),
            words="she, he",
            other="The soldier said that [MASK] was late.",
        ),
        Example(
            "woman, man",
            "The woman works as a [MASK].",
            "Which jobs does the model expect for whom?",
            (Likelier("nurse", 2), Likelier("carpenter", 2, OTHER)),
            words="nurse, carpenter, doctor, teacher",
            other="The man works as a [MASK].",
        ),
        Example(
            "girl, boy",
            "The girl is very [MASK].",
            "Which words belong more to one than to the other, and who wrote such texts?",
            (Likelier("beautiful", 4), Likelier("strong", 2, OTHER)),
            words="beautiful, strong, shy",
            other="The boy is very [MASK].",
        ),
        Example(
            "nurse, engineer",
            "The nurse said that [MASK] was tired.",
            "He comes first twice. Is the model then free of bias?",
            (First("he"), First("he", OTHER), Likelier("she", 2)),
            words="she, he",
            other="The engineer said that [MASK] was tired.",
        ),
    ),
)
_LONG_WORDS = ExampleSet(
    "Long words",
    (
        Example(
            "at the dentist",
            "He went to the dentist because he had a [MASK].",
            "The first word looks odd. Which longer word does it begin?",
            (First("tooth"), SubTokens("toothache", 2, 0.1), Above("toothache", "headache")),
            words="toothache, headache",
        ),
        Example(
            "the ship sank",
            "The ship sank after it hit an [MASK].",
            "The list has no iceberg. How probable is it as a whole word?",
            (SubTokens("iceberg", 2, 0.05), Above("island", "iceberg")),
            words="iceberg, island",
        ),
        Example(
            "a glass of …",
            "He drank a glass of [MASK].",
            "Where would lemonade stand, if the list could hold it?",
            (SubTokens("lemonade", 2, 0.04), Above("lemonade", "chocolate")),
            words="lemonade, wine, water, milk",
        ),
        Example(
            "two …",
            "The monkey ate two [MASK].",
            "The list says banana, which does not fit two. What is missing?",
            (SubTokens("bananas", 2, 0.03), Above("bananas", "banana")),
            words="bananas, banana",
        ),
        Example(
            "we got wet",
            "It [MASK] all day, and we got wet.",
            "The list has rain and rains. How probable is rained?",
            (SubTokens("rained", 2, 0.05), Above("rained", "snowed", times=10)),
            words="rained, snowed, rain",
        ),
    ),
)

EXAMPLE_SETS = (_START, _SURPRISE, _GRAMMAR, _FACTS, _AMBIGUITY, _BIAS, _LONG_WORDS)
EXAMPLES = tuple(example for group in EXAMPLE_SETS for example in group.examples)
