"""Words with two senses that the embedded model tells apart, which a test holds."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TwoSenses:
    """A word, and sentences for each of its senses."""

    word: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    fresh: tuple[str, str]  # one more sentence of each sense, whose sense is to be found

    @property
    def lines(self) -> str:
        """The sentences as a reader would type them."""
        return "\n".join((*self.first, "", *self.second))


TWO_SENSES = (
    TwoSenses(
        "bank",
        (
            "She put her money in the bank.",
            "The bank lent him money to buy a house.",
            "He works at a bank in the city.",
        ),
        (
            "They sat on the bank of the river.",
            "The boat came to the bank of the stream.",
            "Trees grow on the bank of the river.",
        ),
        ("The bank opens an account for her money.", "We fished from the bank of the lake."),
    ),
    TwoSenses(
        "match",
        (
            "Our team won the match.",
            "They watched the football match on television.",
            "The match ended without a goal.",
        ),
        (
            "He lit the fire with a match.",
            "She struck a match to light the candle.",
            "A match burns for a few seconds.",
        ),
        ("The players came late to the match.", "He needed a match to light the lamp."),
    ),
    TwoSenses(
        "light",
        (
            "She turned on the light in the room.",
            "The light of the sun came through the window.",
            "The light of the lamp was bright.",
        ),
        (
            "The bag is very light and easy to carry.",
            "A feather is light.",
            "The box was light, so he carried it alone.",
        ),
        ("The lamp gives a warm light.", "Her suitcase was light because it was empty."),
    ),
    TwoSenses(
        "park",
        (
            "The children play in the park.",
            "We walked through the park.",
            "There is a lake in the park.",
        ),
        (
            "You can park the car here.",
            "Do not park in front of the door.",
            "She could not park her car.",
        ),
        ("The park has many trees.", "He tried to park the bus."),
    ),
)
