// What the page shows of an answer: values for the same templates that the server fills in, made as in
// `show/drawing.py`, `show/bars.py`, `show/answers.py` and `ui/explore/`.
import { candidate_names, grouped, in_unit, loss as loss_text, percent, sum } from "./formats.js";
import { version } from "./draft.js";

const MAX_BARS = 30;
const MAX_STRIP_TOKENS = 600;
const MAX_COLUMNS = 100;

const single = (word) => (word?.parts.length === 1 ? word.parts[0].token_id : null);

function bars(mask, number, vocabulary, hidden) {
  const bar = ({ word, probability, nll_nats }, id, kind, note) => (
    { word, probability, nll_nats, kind, note, key: id === null ? "" : `${number}:${id}` });
  const listed = mask.candidates.slice(0, MAX_BARS);
  const names = candidate_names(listed, vocabulary);
  const all = listed.map((candidate, at) => {
    const note = candidate.token_id === single(hidden) ? "the hidden word" : "";
    return bar({ ...candidate, word: names[at] }, candidate.token_id, note && "hidden", note);
  });
  const seen = new Set(listed.map(({ token_id }) => String(token_id)));
  for (const word of hidden ? [hidden, ...mask.scored] : mask.scored) {
    const ids = word.parts.map(({ token_id }) => token_id).join();
    if (seen.has(ids)) continue;
    seen.add(ids);
    const rank = word.rank ? `rank ${grouped(word.rank)}` : `${word.parts.length} tokens`;
    const [kind, note] = word === hidden ? ["hidden", `the hidden word, ${rank}`] : ["asked", rank];
    all.push(bar(word, single(word), kind, note));
  }
  const tokens = all.filter(({ key }) => key);
  const left = vocabulary.vocabulary_size - tokens.length;
  const probability = left ? Math.max(0, 1 - sum(tokens, (token) => token.probability)) : 0;
  const note = `in ${grouped(left)} words`;
  return [...all, bar({ word: "all other words", probability, nll_nats: null }, null, "rest", note)];
}

function items({ text, ids, tokens, spans }, words, masks, unknown) {
  const all = [...words.map((word) => ({ at: word.tokens[0], word })), ...masks.map((at, number) => ({ at, number }))];
  return all.sort((a, b) => a.at - b.at).map(({ at, word, number }) => {
    const start = spans[at][0];
    const joined = start > 0 && /\S/.test(text[start - 1]);
    if (!word) return { kind: "mask", token: number, joined, closing: false };
    const starts = [...word.tokens.map((token) => Math.max(word.start, spans[token][0])), word.end];
    const names = word.tokens.map((token) => `${tokens[token]} (id ${ids[token]})`).join(", ");
    const closing = joined && !/[\p{L}\p{N}]/u.test(word.text); // a sign stays with the word before it
    return { kind: "word", token: at, joined, closing, about: `${word.tokens.length > 1 ? "tokens" : "token"} ${names}`,
      pieces: starts.slice(1).map((end, part) => text.slice(starts[part], end)),
      unknown: word.tokens.some((token) => ids[token] === unknown) };
  });
}

// Where a line begins, by its first letter that says so.
const RIGHT_TO_LEFT = /^[^\p{L}]*[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;

// An axis of about five round numbers, from zero to a little beyond the largest value.
export function axis(largest, unit, room = 0.2) {
  const end = (largest || 1) * (1 + room);
  const power = 10 ** Math.floor(Math.log10(end / 5));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((size) => end / size <= 5);
  const ticks = Array.from({ length: Math.floor(end / step + 1e-9) + 1 }, (_, at) => (
    { label: String(Number((at * step).toPrecision(6))), share: (at * step) / end }));
  const mark = (value, role, text) => ({ role, start: 0, size: Math.min(value / end, 1), text, cut: value > end });
  return { unit, zero: 0, ticks, mark };
}

const short = (value) => {
  if (!Number.isFinite(value)) return "∞";
  return Number(value.toFixed(2)) ? value.toFixed(value >= 1 ? 1 : 2) : "0";
};
// The shortest axis of losses with two decimals, as `least_axis` of `show/numbers.py`.
const LEAST_AXIS = 0.5;

// With the `environment` of the templates, a `vocabulary`, and the `config` of the page.
export class Views {
  render = (name, values) => this.environment.renderTemplate(`${name}.html`, values);

  // The pieces that every answer has: the words as buttons, and the tokens.
  sentence({ text, hidden }, encoding, filling, selected, truth) {
    const masks = this.vocabulary.masks(encoding);
    const best = filling?.masks.map(({ candidates }) => candidates[0]) ?? [];
    const tokens = encoding.tokens.map((token, at) => [token, encoding.ids[at]]).slice(0, MAX_STRIP_TOKENS);
    const strip = encoding.ids.length > MAX_STRIP_TOKENS ? "" : this.render("explore/strip", {
      items: items(encoding, this.vocabulary.textWords(encoding).filter((word) => !word.blank), masks, this.vocabulary.unk_id),
      hidden: masks.map((_, at) => hidden[at] ?? null),
      guesses: best.map((candidate) => [candidate_names([candidate], this.vocabulary)[0], candidate.probability]),
      direction: RIGHT_TO_LEFT.test(text) ? "rtl" : "ltr",
      ...{ selected, truth, version: version(text) },
    });
    return { strip, tokens: this.render("explore/tokens", { tokens }) };
  }

  mask(filling, selected, { unit, zoom }, hidden) {
    const mask = filling.masks[selected];
    const values = {
      filling: { masks: filling.masks, signature: { name: this.config.name } },
      mask: { ...mask, perplexity: Math.exp(mask.entropy_nats) },
      ...{ selected, unit, zoom, hidden, hidden_id: single(hidden) },
      bars: bars(mask, selected, this.vocabulary, hidden),
      left_out: Math.max(0, mask.candidates.length - MAX_BARS),
      endings: mask.candidates.map(({ token_id }) => token_id).filter(this.vocabulary.isEnding),
      version: version(filling.encoding.text),
    };
    const pieces = Object.fromEntries(["stats", "candidates", "scored"].map((piece) => [piece, this.render(`explore/${piece}`, values)]));
    return { bars: this.render("page/bars", values), ...pieces };
  }

  // A mask on the loss curve: its hidden word, or its first candidate.
  point(filling, mask, hidden, unit) {
    const first = filling.masks[mask].candidates[0];
    const { word, probability, nll_nats } = hidden ?? first;
    const texts = [percent(probability), loss_text(nll_nats, unit)];
    return { mask, word: word.trim() || first.token, hidden: Boolean(hidden), probability, nll_nats, texts };
  }

  // Tints, story and table of a sentence whose first words are known; `start` is the first new one.
  surprise(measured, start, total, unit) {
    const { levels, labels } = this.config;
    const level = ({ unknown, nll_nats }) => (unknown ? 0 : levels.filter((border) => nll_nats >= border).length);
    const values = {
      ...{ unit, vocabulary: null, known: measured.length, total, labels: labels[unit] },
      unknown: measured.filter((word) => word.unknown).map((word) => word.word.text),
      unspaced: this.vocabulary.isUnspaced(measured.map((word) => word.word.text).join("")),
      summary: summary(measured.filter((word) => !word.unknown)),
      chart: this.#columns(measured.slice(0, MAX_COLUMNS).filter((word) => !word.unknown), unit, level),
    };
    const words = measured.slice(start);
    return {
      words: words.map((word) => (
        { token: word.word.tokens[0], level: level(word), html: this.render("explore/surprise_word", { unit, word }) })),
      ...{ known: measured.length, total, next: measured.length < total ? measured.length : null },
      html: { story: this.render("page/surprise", values), table: this.render("explore/surprise_table", { unit, words }) },
    };
  }

  #columns(words, unit, level) {
    if (!words.length) return null;
    const values = words.map((word) => in_unit(word.nll_nats, unit));
    const { ticks, zero, mark } = axis(Math.max(LEAST_AXIS, ...values.filter(Number.isFinite)), unit);
    ticks.at(-1).label += ` ${unit}`;
    const columns = words.map((word, at) => {
      const [below] = candidate_names(word.expected, this.vocabulary);
      const text = short(values[at]);
      return [{ word: word.word.text, value: values[at], text, below, level: level(word) }, mark(values[at], "", text)];
    });
    return { ticks, zero, columns };
  }
}

function summary(words) {
  if (!words.length) return null;
  const [nats, tokens] = [sum(words, (word) => word.nll_nats), sum(words, (word) => word.parts.length)];
  return {
    ...{ words: words.length, tokens, total_nll_nats: nats, mean_word_nll_nats: nats / words.length },
    ...{ mean_token_nll_nats: nats / tokens, pseudo_perplexity: Math.exp(nats / tokens) },
    most: words.reduce((most, word) => (word.nll_nats > most.nll_nats ? word : most)),
  };
}
