// A text and the words behind its masks, as `explore/sentence_strip.py` edits them: { text, hidden }.
import { Refused } from "./model.js";

// Short name of a text, to recognise clicks on an outdated one.
export function version(text) {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193) >>> 0;
  return `${hash.toString(16)}-${text.length}`;
}

const count = (list, item) => list.filter((own) => own === item).length;
const words = (parts, mask) => parts.filter((own) => own !== mask && /^[\p{L}\p{N}]/u.test(own)).length;

function common(left, right) {
  let length = 0;
  while (length < Math.min(left.length, right.length) && left[length] === right[length]) length += 1;
  return length;
}

// The draft of an edited text: masks outside the one stretch that was edited keep their words. If it
// replaces words by a mask, that hides those words.
export function carried(draft, typed, vocabulary) {
  const mask = vocabulary.mask_token;
  const text = vocabulary.withMasks(typed);
  const named = mask.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const pieces = (own) => own.match(new RegExp(`${named}|[\\p{L}\\p{N}_]+|\\s+|[^]`, "gu")) ?? [];
  const [old, fresh] = [pieces(vocabulary.withMasks(draft.text)), pieces(text)];
  const start = common(old, fresh);
  const end = common(old.slice(start).reverse(), fresh.slice(start).reverse());
  const [old_tail, tail] = [old.length - end, fresh.length - end];
  const hidden = Array(count(fresh, mask)).fill(null);
  const kept = words([...old.slice(0, start), ...old.slice(old_tail)], mask);
  if (2 * kept >= words(old, mask)) {
    const [before, after] = [count(old.slice(0, start), mask), count(old.slice(old_tail), mask)];
    const known = Array.from({ length: count(old, mask) }, (_, at) => draft.hidden[at] ?? null);
    hidden.splice(0, before, ...known.slice(0, before));
    if (after) hidden.splice(hidden.length - after, after, ...known.slice(-after));
  }
  const changed = old.slice(start, old_tail).join("").trim();
  const one = tail - start === 1 && fresh[start] === mask;
  if (one && changed && !changed.includes(mask)) hidden[count(fresh.slice(0, start), mask)] = changed;
  return { text, hidden };
}

function range(encoding, vocabulary, mask) {
  const start = encoding.text.indexOf(vocabulary.mask_token, encoding.spans[vocabulary.masks(encoding)[mask]][0]);
  return [start, start + vocabulary.mask_token.length];
}

// A token in place of a mask, with the blanks that make the model read just that token.
function written(encoding, vocabulary, mask, id) {
  const wanted = encoding.ids.with(vocabulary.masks(encoding)[mask], id).join();
  const [start, end] = range(encoding, vocabulary, mask);
  const [left, right] = [encoding.text.slice(0, start), encoding.text.slice(end)];
  const word = vocabulary.word(id);
  const [joined, separate] = [left.trimEnd() + word + right, left + word + right];
  const spaced = [`${left} ${word}${right}`, `${left}${word} ${right}`, `${left} ${word} ${right}`];
  const readable = vocabulary.isContinuation(id) ? joined : separate;
  return [separate, joined, ...spaced].find((own) => vocabulary.encode(own).ids.join() === wanted) ?? readable;
}

// The draft after a click of explore.js, and the mask that is chosen then.
export function acted({ text, hidden }, action, selected, vocabulary) {
  const encoding = vocabulary.encode(text);
  const known = vocabulary.masks(encoding).map((_, at) => hidden[at] ?? null);
  if (action.do === "choose") return { text, hidden, selected: action.token };
  if (action.do === "hide") {
    const word = vocabulary.textWords(encoding).find(({ tokens }) => tokens.includes(action.token));
    if (!word) return { text, hidden, selected };
    const number = vocabulary.masks(encoding).filter((at) => encoding.spans[at][0] < word.start).length;
    const changed = text.slice(0, word.start) + vocabulary.mask_token + text.slice(word.end);
    return { text: changed, hidden: known.toSpliced(number, 0, word.text), selected: number };
  }
  const mask = action.do === "fill" ? Number(action.key.split(":")[0]) : action.token;
  const none = action.do === "restore" && (known[mask] ?? null) === null;
  if (!(mask in known) || none) return { text, hidden, selected };
  const others = known.toSpliced(mask, 1);
  if (action.do === "restore") {
    const [start, end] = range(encoding, vocabulary, mask);
    return { text: text.slice(0, start) + known[mask] + text.slice(end), hidden: others, selected: 0 };
  }
  if (action.do !== "fill") throw new Refused(`the page knows no action ${action.do}`);
  return { text: written(encoding, vocabulary, mask, Number(action.key.split(":")[1])), hidden: others, selected: 0 };
}
