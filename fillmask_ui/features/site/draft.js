// A text and the words behind its masks, as `explore/sentence_strip.py` edits them: { text, hidden }.
import { LETTER } from "./formats.js";
import { escaped } from "./vocabulary.js";

// Short name of a text, to recognise clicks on an outdated one.
export const version = (text) =>
  [...text].reduce((hash, letter) => (Math.imul(hash, 31) + letter.codePointAt()) >>> 0, text.length).toString(16);

const count = (list, item) => list.filter((entry) => entry === item).length;
const words = (parts, mask) => parts.filter((part) => part !== mask && LETTER.test(part)).length;
const common = (left, right) => [...left, null].findIndex((part, at) => part !== right[at]);

// The draft of an edited text: masks outside the one stretch that was edited keep their words. If it
// replaces words by a mask, that hides those words; the beginning of a mask, as typed, is no word.
export function carried(draft, typed, vocabulary) {
  const [mask, text] = [vocabulary.mask_token, vocabulary.withMasks(typed)];
  const split = (edited) => edited.match(new RegExp(`${escaped(mask)}|[\\p{L}\\p{N}_]+|\\s+|[^]`, "gu")) ?? [];
  const [old, fresh] = [split(vocabulary.withMasks(draft.text)), split(text)];
  const start = common(old, fresh);
  const end = common(old.slice(start).reverse(), fresh.slice(start).reverse());
  const [head, tail] = [old.slice(0, start), old.slice(old.length - end)];
  const [before, after, all] = [head, tail, fresh].map((parts) => count(parts, mask));
  // An unrelated sentence with the same ending keeps no words.
  const related = 2 * words([...head, ...tail], mask) >= words(old, mask);
  const hidden = Array.from({ length: all }, (_, at) => {
    const index = at < before ? at : at >= all - after ? at - all + count(old, mask) : null;
    return (related && draft.hidden[index]) || null;
  });
  const changed = old.slice(start, old.length - end).join("").trim();
  const isOneMask = fresh.length - end - start === 1 && fresh[start] === mask;
  if (isOneMask && /^[^[<_]/.test(changed) && !changed.includes(mask)) hidden[before] = changed;
  return { text, hidden };
}

// A token between the texts on both around of a mask, with the blanks that make the model read the expected ids.
function written([left, right], id, expected, vocabulary) {
  const word = vocabulary.word(id);
  const [joined, separate] = [left.trimEnd() + word + right, left + word + right];
  const spaced = [`${left} ${word}${right}`, `${left}${word} ${right}`, `${left} ${word} ${right}`];
  const readable = vocabulary.isContinuation(id) ? joined : separate;
  return [separate, joined, ...spaced].find((candidate) => vocabulary.encode(candidate).ids.join() === expected.join()) ?? readable;
}

// The draft after a click of explore.js, with the mask that is `selected` then.
export function acted(draft, action, vocabulary) {
  const [{ text }, { mask_token }] = [draft, vocabulary];
  if (action.do === "choose") return { ...draft, selected: action.token };
  const encoding = vocabulary.encode(text);
  const masks = vocabulary.masks(encoding);
  const hidden_words = masks.map((_, at) => draft.hidden[at] ?? null);
  if (action.do === "hide") {
    const word = vocabulary.textWords(encoding).find(({ tokens }) => tokens.includes(action.token));
    if (!word) return draft;
    const selected = masks.filter((at) => encoding.spans[at][0] < word.start).length;
    const changed = text.slice(0, word.start) + mask_token + text.slice(word.end);
    return { text: changed, hidden: hidden_words.toSpliced(selected, 0, word.text), selected };
  }
  // A token is written into a mask, or its word put back.
  const [mask, id] = action.do === "fill" ? action.key.split(":").map(Number) : [action.token, null];
  if (!(mask in masks) || (id === null && !hidden_words[mask])) return draft;
  const start = text.indexOf(mask_token, encoding.spans[masks[mask]][0]);
  const around = [text.slice(0, start), text.slice(start + mask_token.length)];
  const expected = encoding.ids.with(masks[mask], id);
  const changed = id === null ? around.join(hidden_words[mask]) : written(around, id, expected, vocabulary);
  return { text: changed, hidden: hidden_words.toSpliced(mask, 1), selected: 0 };
}
