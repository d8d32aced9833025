"""What the figures mean, in one line each, for whoever hovers over one or reaches it by keyboard.

Templates name a figure by its key; `page/facts.html: explained` makes it a button that shows the
line.
"""

EXPLANATIONS = {
    "word": "What the model puts in place of the mask; ## marks a piece that ends another word.",
    "token": "The piece of text that the model reads and writes, as its vocabulary spells it.",
    "id": "The number of the token in the model's vocabulary.",
    "rank": "Place among all tokens of the vocabulary; 1 is the most probable.",
    "word_rank": "Place of the word among all tokens; a word of several tokens has none.",
    "probability": "How much the model expects this word here; over all words it adds up to 100 %.",
    "word_probability": "Of the whole word: the product over its tokens, each given those before.",
    "loss": "Minus the logarithm of the probability (NLL): 0 if certain, more for a surprise.",
    "word_loss": "Minus the logarithm of the word's probability: the sum over its sub-tokens.",
    "cumulative": "Probability of this word and all better ones together.",
    "sub_tokens": "The tokens of the word, each with its share of the loss, given those before it.",
    "hidden_word": "The word behind the mask: what the model gives it, and what loss that costs.",
    "entropy": "How undecided the model is: the loss that it expects; 0 if it is sure of one word.",
    "perplexity": "As undecided as among so many equally probable words: e to the entropy in nats.",
    "vocabulary": "How many different tokens the model can put here.",
    "joint_rank": "Place among the fillings found; 1 is the most probable.",
    "joint_probability": "Of all masks filled like this together: the product of the factors.",
    "joint_loss": "Minus the logarithm of the joint probability: the sum of the factors.",
    "factors": "Loss of each word, given the words before it in this list.",
    "kl": "KL(A‖B): what is lost where B's probabilities stand in for A's; 0 if they are the same.",
    "jensen_shannon": "How far the two are apart, either way: 0 if they are equal, at most ln 2.",
    "two_entropies": "How undecided A is, then B: the loss that each expects.",
    "points": "Probability under B less that under A, in points of a hundred.",
    "rank_change": "Places among all words: ▲ B puts the word higher than A does, ▼ lower.",
    "cross_entropy": "Cross-entropy with what was there: −ln of the share that the true word got.",
    "variant_size": "Of the weights on disk; below it, how many times that of the model itself.",
    "variant_speed": "Of an evaluation of many texts; below it, how many times the model's own.",
    "variant_sentence": "Time to fill one mask of a short sentence; half of the calls took longer.",
    "variant_loss": "Mean loss of a hidden token, the cross-entropy: how surprised the model is.",
    "variant_change": "How much larger the loss is than the model's own; the interval pairs texts.",
    "variant_verdict": "Pass: interval below +5 %; at risk: below +10 %; across: too few texts.",
    "variant_agreement": "Share of the hidden tokens where both have the same best guess.",
    "variant_kl": "How far its distributions are from the model's, on average; 0 if equal.",
    "snr": "Signal-to-noise ratio of the numbers: 6 dB less for each bit that is lost.",
    "snr_usual": "The middle one of the parts that are stored alike; far below it, look closer.",
    "snr_activations": "Of what the part yields on texts; it carries the noise of parts before it.",
    "recovered": "Mean loss less that with this one part in full precision, on the same tokens.",
    "precision": "How the weights are stored; float16 weights are computed with as float32.",
}


def as_unsure(perplexity: float) -> str:
    """A perplexity in words.

    >>> as_unsure(6.2), as_unsure(1.1)
    ('as unsure as among 6 equal words', 'nearly sure of one word')
    """
    return (
        f"as unsure as among {perplexity:,.0f} equal words"
        if perplexity >= 1.5
        else ("nearly sure of one word")
    )
