// What the model says of a text, as `filling/` computes it in Python, in double precision.
import { Refused } from "./model.js";

const WANTED = 5; // best tokens kept for each word of a sentence

// Log-probabilities, Float64Array [V].
function logSoftmax(logits) {
  let most = -Infinity;
  for (const value of logits) most = Math.max(most, value);
  let sum = 0;
  for (const value of logits) sum += Math.exp(value - most);
  const log = most + Math.log(sum);
  return Float64Array.from(logits, (value) => value - log);
}

function entropy(log) {
  let sum = 0;
  for (const own of log) sum -= Math.exp(own) * own;
  return sum;
}

// 1 for the best; of equal tokens the lower id is the better one.
function rank(log, id) {
  let better = 1;
  for (let own = 0; own < log.length; own += 1) better += log[own] > log[id] || (own < id && log[own] === log[id]);
  return better;
}

function best(log, count) {
  const found = []; // ids, best first
  for (let id = 0; id < log.length; id += 1) {
    if (found.length === count && log[id] <= log[found.at(-1)]) continue;
    let at = found.length;
    while (at && log[found[at - 1]] < log[id]) at -= 1;
    found.splice(at, 0, id);
    if (found.length > count) found.pop();
  }
  return found;
}

export class Filling {
  constructor(model, vocabulary) {
    Object.assign(this, { model, vocabulary });
  }

  candidates(log, count) {
    const { token, word } = this.vocabulary;
    return best(log, count).map((id, place) => (
      { rank: place + 1, token_id: id, token: token(id), word: word(id), probability: Math.exp(log[id]), nll_nats: -log[id] }));
  }

  async at(texts, positions) {
    return (await this.model.logits(texts, positions)).map(logSoftmax);
  }

  // A text with masks: { encoding, positions }.
  read(text) {
    const encoding = this.vocabulary.encode(this.vocabulary.withMasks(text));
    const positions = this.vocabulary.masks(encoding);
    const { mask_token } = this.vocabulary;
    if (!positions.length) throw new Refused(`the text has no mask: put ${mask_token} (or ___) where a word is to be guessed`);
    this.vocabulary.check(encoding);
    return { encoding, positions };
  }

  // What the model puts at each mask; `words` are scored there, too.
  async fill(text, { top_k = 5, words = [] } = {}) {
    const { encoding, positions } = this.read(text);
    const logs = await this.at(positions.map(() => encoding.ids), positions);
    const masks = [];
    for (const [at, position] of positions.entries()) {
      const scored = [];
      for (const word of words) scored.push(await this.score(encoding, position, word, logs[at]));
      masks.push({ position, entropy_nats: entropy(logs[at]), candidates: this.candidates(logs[at], top_k), scored });
    }
    return { encoding, masks, logs };
  }

  // Ids of a word at a position; a `Refused` if it has none, or none of its own.
  spelled(encoding, position, word) {
    const start = encoding.spans[position][0];
    const ids = this.vocabulary.encodeWord(word, encoding.text.slice(Math.max(0, start - 1), start));
    const { unk_id, mask_id } = this.vocabulary;
    const named = `the candidate '${word.slice(0, 80)}'`;
    if (!ids.length) throw new Refused(`${named} has no tokens in this model's vocabulary: leave it out`);
    if (ids.includes(unk_id)) throw new Refused(`${named} cannot be spelled in this model's vocabulary, so it has no probability of its own: leave it out`);
    if (ids.includes(mask_id)) throw new Refused(`${named} is itself a mask: give a word`);
    if (encoding.ids.length - 1 + ids.length > this.vocabulary.max_tokens) throw new Refused(`with ${named} the text is too long for this model: shorten it`);
    return ids;
  }

  // Left to right within the word, its later sub-tokens hidden.
  #views(ids, first, end, word) {
    const { mask_id } = this.vocabulary;
    return word.map((_, part) => [
      [...ids.slice(0, first), ...word.slice(0, part), ...word.slice(part).map(() => mask_id), ...ids.slice(end)],
      first + part,
    ]);
  }

  async score(encoding, position, word, log) {
    const ids = this.spelled(encoding, position, word);
    let logs = [log];
    if (ids.length > 1) {
      const views = this.#views(encoding.ids, position, position + 1, ids);
      logs = await this.at(views.map(([text]) => text), views.map(([, at]) => at));
    }
    return { word, ...this.#loss(ids, logs) };
  }

  #loss(ids, logs) {
    const parts = ids.map((id, at) => ({ token_id: id, token: this.vocabulary.token(id), nll_nats: -logs[at][id] }));
    const nll_nats = parts.reduce((sum, part) => sum + part.nll_nats, 0);
    return { nll_nats, probability: Math.exp(-nll_nats), rank: ids.length > 1 ? null : rank(logs[0], ids[0]), parts };
  }

  // The words of a text without a mask.
  words(text) {
    const encoding = this.vocabulary.encode(text);
    this.vocabulary.check(encoding);
    return { encoding, words: this.vocabulary.textWords(encoding) };
  }

  // The loss of one of them, hidden alone; of several sub-tokens one more view has one mask in its place.
  async surprisal(encoding, word) {
    const { ids } = encoding;
    const [first, end] = [word.tokens[0], word.tokens.at(-1) + 1];
    const own = ids.slice(first, end);
    const views = this.#views(ids, first, end, own);
    if (own.length > 1) views.push([[...ids.slice(0, first), this.vocabulary.mask_id, ...ids.slice(end)], first]);
    const logs = await this.at(views.map(([text]) => text), views.map(([, at]) => at));
    const unknown = own.some((id) => this.vocabulary.special_ids.includes(id));
    return { word, ...this.#loss(own, logs), wanted: this.candidates(logs.at(-1), WANTED), unknown };
  }
}
