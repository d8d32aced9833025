// Texts as token ids, each token with its place in the text and its word, as Python's vocabulary
// gives them (`models/vocabulary.py`). The spelling of every token comes with the page.
import { Tokenizer } from "./tokenizers.mjs";
import { LETTER, grouped } from "./formats.js";
import { Refused } from "./model.js";

const MASKS = /\[mask\]|<mask>|_{3,}/gi;
const HAS_LETTER = /[\p{L}\p{N}]/u;
const SIGN = /[\p{P}\p{S}]/u;
const BLANKS = { "\n": "⏎", "\t": "⇥" };
export const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

// Without case and accents, where that changes no position.
const folded = (text) =>
  text.replace(/[^]/gu, (letter) => {
    const plain = letter.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
    return plain.length === letter.length ? plain : letter;
  });

// A range without the blanks before it.
function visible(text, [start, end]) {
  let first = start;
  while (first < end && /\s/.test(text[first])) first += 1;
  return [first, end];
}

export class Vocabulary {
  #groups = []; // number of the word of each token that the model of the tokenizer made

  constructor(json, config) {
    Object.assign(this, config); // as `build.py` writes it: mask_token, words, max_tokens and others
    this.tokenizer = new Tokenizer(json, {});
    this.endings = new Set(config.endings);
    this.unspaced = new RegExp(config.unspaced, "u"); // a letter of a script without blanks between words
    this.tokenizer.model = new Proxy(this.tokenizer.model, {
      apply: (model, _, [words]) => words.flatMap((word) => {
        const [tokens, group] = [model([word]), (this.#groups.at(-1) ?? 0) + 1];
        this.#groups.push(...tokens.map(() => group));
        return tokens;
      }),
    });
    this.ids = new Map(this.tokenizer.model.tokens_to_ids);
  }

  token = (id) => this.tokenizer.id_to_token(id) ?? `[${id}]`;
  word = (id) => this.words[id] ?? this.token(id);
  isContinuation = (id) => this.endings.has(id);
  isEnding = (id) => this.isContinuation(id) && LETTER.test(this.word(id)); // shown as one

  // Masks in any spelling as the model's own.
  withMasks(text) {
    return text.replace(MASKS, this.mask_token).replace(new RegExp(escaped(this.mask_token), "gi"), this.mask_token);
  }

  // { text, ids, tokens, spans, words, special }; a word is null for a special token.
  encode(text, special = true) {
    this.#groups = [];
    const tokens = this.tokenizer.encode_text(text);
    const full = special ? (this.tokenizer.post_processor?.(tokens, null, true).tokens ?? tokens) : tokens;
    const begin = full.findIndex((_, at) => tokens.every((token, offset) => full[at + offset] === token));
    const unknown = this.unk_id === null ? null : this.token(this.unk_id);
    const added = (token) => this.tokenizer.added_tokens_map.has(token) && (token !== unknown || text.includes(token));
    const groups = this.#groups[Symbol.iterator]();
    const inner = tokens.map((token) => (added(token) ? null : groups.next().value));
    const ids = full.map((token) => this.ids.get(token) ?? this.unk_id);
    const text_ids = ids.slice(begin, begin + tokens.length);
    const pieces = text_ids.map((id, at) => (inner[at] === null ? tokens[at] : this.word(id)));
    const spans = this.prefix === "Ġ" ? byBytes(text, tokens, inner) : locate(text, pieces, tokens);
    const around = (list, first, last) => full.map((_, at) => (at < begin ? first : list[at - begin] ?? last));
    const positions = around(spans, [0, 0], [text.length, text.length]);
    const special_flags = around(text_ids.map(() => false), true, true);
    const words = this.#number(text, ids, positions, around(inner, null, null), special_flags);
    return { text, ids, tokens: ids.map(this.token), spans: positions, words, special: special_flags };
  }

  // Ids of a word as the model would read it behind a character.
  encodeWord(typed, before = " ") {
    const word = typed.trim();
    if (this.ids.has(typed) && this.prefix && typed.startsWith(this.prefix)) return [this.ids.get(typed)];
    if (!word) return [];
    if (!before) return this.encode(word, false).ids;
    const behind = (text) => {
      const { ids } = this.encode(this.mask_token + text, false);
      return ids.slice(ids.indexOf(this.mask_id) + 1);
    };
    if (/\s/.test(before)) return behind(` ${word}`);
    const after = (context) => {
      const { ids, spans } = this.encode(context + word, false);
      if (spans.some(([start, end]) => start < context.length && context.length < end)) return [];
      return ids.filter((_, at) => spans[at][0] >= context.length);
    };
    return [before, "("].map(after).find((ids) => ids.length) ?? behind(word);
  }

  // Whether most of a text is in such a script.
  isUnspaced = (text) => 2 * [...text].filter((letter) => this.unspaced.test(letter)).length >= [...text].length;

  masks = ({ ids }) => [...ids.keys()].filter((at) => ids[at] === this.mask_id);

  // The word of each token, numbered as `text_words.py` does; null for masks and special tokens.
  #number(text, ids, spans, units, special) {
    let [count, left] = [-1, null];
    return ids.map((id, at) => {
      if (special[at] || id === this.mask_id) {
        left = null;
        return null;
      }
      const [start, end] = visible(text, spans[at]);
      const covered = text.slice(start, end);
      // Accents and joiners are of the kind of what they follow.
      const letters = HAS_LETTER.test(covered) || (!SIGN.test(covered) && Boolean(left?.letters));
      const mark = ["▁", "Ġ"].includes(this.token(id)); // of a beginning alone
      const empty = spans[at][0] === spans[at][1] && !mark;
      const token = { unit: units[at], span: spans[at], start, blank: start === end, letters, mark, empty };
      const continues = left && this.#continues(text, left, token);
      if (!continues) count += 1;
      if (!continues || !empty) left = token;
      return count;
    });
  }

  #continues(text, left, token) {
    const end = left.span[1];
    if (token.span[0] < end) return true; // they share a character
    if (token.unit === null || token.unit !== left.unit || /\s/.test(text.slice(end, token.start))) return false;
    if (token.blank || left.blank) return token.empty || (left.mark && !token.blank);
    const last = [...text.slice(Math.max(0, end - 2), end)].at(-1);
    const [first] = text.slice(token.start, token.start + 2);
    return ![last, first].some((letter) => this.unspaced.test(letter)) && token.letters === left.letters;
  }

  // The words of a text, without masks and special tokens: { text, start, end, tokens, blank }.
  textWords({ text, spans, words, special }) {
    const groups = Map.groupBy(words.keys(), (at) => words[at]);
    groups.delete(null);
    return [...groups.values()].map((tokens) => {
      const ranges = tokens.map((at) => visible(text, spans[at])).filter(([start, end]) => start < end);
      const all = ranges.length ? ranges : tokens.map((at) => spans[at]);
      let [start, end] = [all[0][0], Math.max(...all.map((range) => range[1]))];
      // What the tokenizer drops, such as accents, goes with the word that it follows.
      const behind = tokens.at(-1) + 1;
      const border = special[behind] ?? true ? text.length : spans[behind][0];
      while (ranges.length && end < border && !/\s/.test(text[end])) end += 1;
      // Some tokenizers say only where a blank ends.
      const floor = spans[tokens[0] - 1]?.[1] ?? 0;
      while (!ranges.length && start > floor && /\s/.test(text[start - 1])) start -= 1;
      const [covered, blank] = [text.slice(start, end), !ranges.length];
      const signs = covered.replace(/\s/g, (blank) => BLANKS[blank] ?? "␣") || "␣";
      return { text: blank ? signs : covered, start, end, tokens, blank };
    });
  }

  // The encoding, if it is short enough.
  check(encoding) {
    const [length, most] = [encoding.ids.length, this.max_tokens];
    const how = `shorten it by about ${grouped(length - most)}; nothing was cut`;
    const tokens = `${grouped(length)} tokens and this model takes at most ${grouped(most)}`;
    if (length > most) throw new Refused(`the text has ${tokens}: ${how}`);
    return encoding;
  }
}

// Where pieces lie in the text that they were made from, one behind the other. One that is not found
// (unknown, or changed by the tokenizer) gets the text up to the next blank or the next piece.
function locate(text, pieces, tokens) {
  const plain = folded(text);
  let end = 0;
  return pieces.map((piece, at) => {
    let start = end;
    while (start < text.length && /\s/.test(text[start])) start += 1;
    if (tokens[at] === "▁") return [start, start];
    const next = pieces[at + 1] ? `|${escaped(folded(pieces[at + 1]))}` : "";
    const border = plain.slice(start + 1).search(new RegExp(`\\s${next}`));
    if (plain.startsWith(folded(piece), start)) end = start + piece.length;
    else end = border < 0 ? text.length : start + 1 + border;
    return [start, end];
  });
}

// The same where tokens are made of bytes, a character for each; a letter may be cut.
function byBytes(text, tokens, words) {
  const encoder = new TextEncoder();
  // Start and end of the letter of each byte.
  const letters = [...text.matchAll(/[^]/gu)].flatMap(({ index, 0: letter }) =>
    Array(encoder.encode(letter).length).fill([index, index + letter.length]));
  let byte = 0;
  return tokens.map((token, at) => {
    let start = letters[byte]?.[0] ?? text.length;
    if (words[at] === null) { // added to the vocabulary, such as the mask
      start = text.indexOf(token, start);
      byte = encoder.encode(text.slice(0, start + token.length)).length;
      return [start, start + token.length];
    }
    const blank = token.startsWith("Ġ") && !/\s/.test(text[start] ?? "x"); // of the tokenizer's own
    byte += token.length - Number(blank);
    let end = letters[byte - 1]?.[1] ?? text.length;
    if (!text.slice(start, end).trim()) return [start, Math.max(start, end)];
    while (/\s/.test(text[start])) start += 1;
    while (/\s/.test(text[end - 1])) end -= 1;
    return [start, end];
  });
}
