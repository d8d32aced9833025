// The model's predictions for a text, as `filling/` computes it in Python, in double precision.
import { sum } from "./formats.js";
import { Refused } from "./model.js";

const EXPECTED = 5; // most probable tokens listed for each word of a sentence

// Log-probabilities, Float64Array [V].
function logSoftmax(logits) {
  const most = logits.reduce((largest, logit) => Math.max(largest, logit), -Infinity);
  const log = most + Math.log(sum(logits, (value) => Math.exp(value - most)));
  return Float64Array.from(logits, (value) => value - log);
}

// 1 for the best; of equal tokens the lower id is the better one.
const rank = (log, id) => 1 + sum(log, (value, rival) => value > log[id] || (rival < id && value === log[id]));

// The ids of some tokens, best first.
function best(log, count) {
  const ranked = [];
  log.forEach((value, id) => {
    if (value <= log[ranked[count - 1]]) return;
    ranked.splice(ranked.findLastIndex((rival) => log[rival] >= value) + 1, 0, id);
    ranked.splice(count);
  });
  return ranked;
}

// Of a `model` and its `vocabulary`.
export class Filling {
  candidates(log, count) {
    const { token, word } = this.vocabulary;
    return best(log, count).map((id, index) => (
      { rank: index + 1, token_id: id, token: token(id), word: word(id), probability: Math.exp(log[id]), nll_nats: -log[id] }));
  }

  at = async (views) => (await this.model.logits(views)).map(logSoftmax);

  // What the model puts at each mask; `words` are scored there, too.
  async fill(text, { top_k = 5, words = [] } = {}) {
    const { mask_token } = this.vocabulary;
    const encoding = this.vocabulary.encode(this.vocabulary.withMasks(text));
    const positions = this.vocabulary.masks(encoding);
    if (!positions.length) throw new Refused(`the text has no mask: put ${mask_token} (or ___) where a word is to be guessed`);
    this.vocabulary.check(encoding);
    const logs = await this.at(positions.map((position) => [encoding.ids, position]));
    const masks = await Array.fromAsync(positions, async (position, at) => ({
      position,
      entropy_nats: sum(logs[at], (value) => -Math.exp(value) * value),
      candidates: this.candidates(logs[at], top_k),
      scored: await Array.fromAsync(words, (word) => this.score(encoding, position, word, logs[at])),
    }));
    return { encoding, masks, logs };
  }

  // Ids of a word at a position, and the problem if it has none, or none of its own; else blank.
  spelled(encoding, position, word) {
    const start = encoding.spans[position][0];
    const ids = this.vocabulary.encodeWord(word, encoding.text.slice(Math.max(0, start - 1), start));
    const { unk_id, mask_id, max_tokens } = this.vocabulary;
    const problem = !ids.length ? "has no tokens in this model's vocabulary: leave it out"
      : ids.includes(unk_id) ? "cannot be spelled in this model's vocabulary, so it has no probability of its own: leave it out"
      : ids.includes(mask_id) ? "is itself a mask: give a word"
      : encoding.ids.length - 1 + ids.length > max_tokens ? "makes the text too long for this model: shorten it" : "";
    return { ids, problem: problem && `the candidate '${word.slice(0, 80)}' ${problem}` };
  }

  // Left to right within the word, its later sub-tokens hidden.
  #views(ids, first, end, word) {
    const masks = word.map(() => this.vocabulary.mask_id);
    return word.map((_, part) => (
      [ids.toSpliced(first, end - first, ...word.slice(0, part), ...masks.slice(part)), first + part]));
  }

  async score(encoding, position, word, log) {
    const { ids, problem } = this.spelled(encoding, position, word);
    if (problem) throw new Refused(problem);
    const logs = ids.length > 1 ? await this.at(this.#views(encoding.ids, position, position + 1, ids)) : [log];
    return { word, ...this.#loss(ids, logs) };
  }

  #loss(ids, logs) {
    const parts = ids.map((id, at) => ({ token_id: id, token: this.vocabulary.token(id), nll_nats: -logs[at][id] }));
    const nll_nats = sum(parts, (part) => part.nll_nats);
    return { nll_nats, probability: Math.exp(-nll_nats), rank: ids.length > 1 ? null : rank(logs[0], ids[0]), parts };
  }

  // The loss of a word of a text, hidden alone; of several sub-tokens one more view has one mask in its place.
  async surprisal({ ids }, word) {
    const { mask_id, special_ids } = this.vocabulary;
    const [first, end] = [word.tokens[0], word.tokens.at(-1) + 1];
    const word_ids = ids.slice(first, end);
    const views = this.#views(ids, first, end, word_ids);
    if (word_ids.length > 1) views.push([ids.toSpliced(first, end - first, mask_id), first]);
    const logs = await this.at(views);
    const unknown = word_ids.some((id) => special_ids.includes(id));
    return { word, ...this.#loss(word_ids, logs), expected: this.candidates(logs.at(-1), EXPECTED), unknown };
  }
}
