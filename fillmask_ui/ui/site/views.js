// What the page shows of an answer: values for the same templates that the server fills in, made as in
// `show/drawing.py`, `show/bars.py`, `show/answers.py` and `ui/explore/`.
import { in_unit, loss as loss_text, percent } from "./formats.js";
import { version } from "./draft.js";

const MAX_BARS = 30;
const MAX_STRIP_TOKENS = 600;
const MAX_COLUMNS = 100;
const LEVELS = [2, 4, 6, 8]; // of a word's loss, in nats

const single = (word) => (word?.parts.length === 1 ? word.parts[0].token_id : null);

function bars(mask, number, names, size, hidden) {
  const shown = mask.candidates.slice(0, MAX_BARS);
  const named = names(shown);
  const ids = new Set(shown.map(({ token_id }) => token_id));
  let total = shown.reduce((sum, { probability }) => sum + probability, 0);
  const all = shown.map((own, at) => {
    const truth = own.token_id === single(hidden);
    return { word: named[at], probability: own.probability, kind: truth ? "hidden" : "", key: `${number}:${own.token_id}`,
      note: truth ? "the hidden word" : "", nll_nats: own.nll_nats };
  });
  const seen = new Set();
  for (const word of [...(hidden ? [hidden] : []), ...mask.scored]) {
    const [id, parts] = [single(word), word.parts.map(({ token_id }) => token_id).join()];
    if (seen.has(parts) || ids.has(id)) continue;
    seen.add(parts);
    const rank = word.rank ? `rank ${word.rank.toLocaleString("en-US")}` : `${word.parts.length} tokens`;
    const truth = word === hidden;
    all.push({ word: word.word, probability: word.probability, kind: truth ? "hidden" : "asked",
      key: id === null ? "" : `${number}:${id}`, note: truth ? `the hidden word, ${rank}` : rank, nll_nats: word.nll_nats });
    if (id === null) continue;
    ids.add(id);
    total += word.probability;
  }
  const left = size - ids.size;
  const rest = left ? Math.max(0, 1 - total) : 0;
  return [...all, { word: "all other words", probability: rest, kind: "rest", key: "", note: `in ${left.toLocaleString("en-US")} words`, nll_nats: null }];
}

function items({ text, ids, tokens, spans }, words, masks, unknown) {
  const first = new Map(words.map((word) => [word.tokens[0], word]));
  const numbers = new Map(masks.map((at, number) => [at, number]));
  return [...new Set([...first.keys(), ...masks])].sort((a, b) => a - b).map((at) => {
    const start = spans[at][0];
    const joined = start > 0 && /\S/.test(text[start - 1]);
    const word = first.get(at);
    if (!word) return { kind: "mask", token: numbers.get(at), joined, unknown: false };
    const starts = [...word.tokens.map((own) => Math.max(word.start, spans[own][0])), word.end];
    const names = word.tokens.map((own) => `${tokens[own]} (id ${ids[own]})`).join(", ");
    return { kind: "word", token: at, joined, about: `${word.tokens.length > 1 ? "tokens" : "token"} ${names}`,
      pieces: starts.slice(1).map((end, part) => text.slice(starts[part], end)),
      unknown: word.tokens.some((own) => ids[own] === unknown) };
  });
}

// Where a line begins, by its first letter that says so.
const direction = (text) => (/^[^\p{L}]*[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u.test(text) ? "rtl" : "ltr");

// An axis of about five round numbers, from zero to a little beyond the largest value.
function axis(largest, unit, room = 0.2) {
  const end = (largest || 1) * (1 + room);
  const power = 10 ** Math.floor(Math.log10(end / 5));
  const step = [1, 2, 5, 10].map((own) => own * power).find((own) => end / own <= 5);
  const ticks = Array.from({ length: Math.floor(end / step + 1e-9) + 1 }, (_, at) => (
    { label: String(Number((at * step).toPrecision(6))), place: (at * step) / end }));
  const mark = (value, side, text) => (
    { side, start: 0, size: Math.min(value / end, 1), text, below: false, cut: value > end });
  return { unit, zero: 0, ticks, mark };
}

// From 0 to 100 %.
export function shares() {
  const found = axis(100, "%", 0);
  found.ticks[0].label += " %";
  return found;
}

const short = (value) => (Number.isFinite(value) ? (value ? value.toFixed(value >= 1 ? 1 : 2) : "0") : "∞");

export class Views {
  constructor(environment, filling, config) {
    Object.assign(this, { environment, filling, config, vocabulary: filling.vocabulary });
  }

  render = (name, values) => this.environment.renderTemplate(`page/${name}.html`, values);

  strip(draft, encoding, filling, selected, truth) {
    if (encoding.ids.length > MAX_STRIP_TOKENS) return "";
    const masks = this.vocabulary.masks(encoding);
    const best = filling?.masks.map(({ candidates }) => candidates[0]) ?? [];
    return this.render("strip", {
      items: items(encoding, this.vocabulary.textWords(encoding), masks, this.vocabulary.unk_id),
      hidden: masks.map((_, at) => draft.hidden[at] ?? null),
      guesses: best.map((own) => [this.config.names([own])[0], own.probability]),
      ...{ selected, truth: truth ?? null, direction: direction(draft.text), version: version(draft.text) },
    });
  }

  tokens = ({ tokens, ids }) => this.render("explore/tokens", { tokens: tokens.slice(0, MAX_STRIP_TOKENS).map((own, at) => [own, ids[at]]) });

  mask(filling, selected, { unit, zoom }, hidden) {
    const own = filling.masks[selected];
    const mask = { ...own, perplexity: Math.exp(own.entropy_nats) };
    const values = {
      filling: { masks: filling.masks, signature: { name: this.config.name } },
      ...{ selected, mask, unit, zoom, hidden: hidden ?? null, hidden_id: single(hidden) },
      bars: bars(mask, selected, this.config.names, this.config.vocabulary_size, hidden),
      left_out: Math.max(0, mask.candidates.length - MAX_BARS),
      endings: mask.candidates.filter(({ token_id, word }) => this.vocabulary.isContinuation(token_id) && /^[\p{L}\p{N}]/u.test(word)).map(({ token_id }) => token_id),
      version: version(filling.encoding.text),
    };
    return Object.fromEntries(["bars", "stats", "candidates", "scored"].map((piece) => [piece, this.render(piece, values)]));
  }

  // A mask on the loss curve: its hidden word, or its first candidate.
  point(filling, mask, hidden, unit) {
    const first = filling.masks[mask].candidates[0];
    const { word, probability, nll_nats } = hidden ?? first;
    return { mask, word: word.trim() || first.token, hidden: Boolean(hidden), probability, nll_nats, texts: [percent(probability), loss_text(nll_nats, unit)] };
  }

  // Tints, story and table of a sentence whose first words are known; `start` is the first new one.
  surprise(found, start, total, unit) {
    const known = found.filter((own) => !own.unknown);
    const sum = (of) => known.reduce((all, own) => all + of(own), 0);
    const [nats, tokens] = [sum((own) => own.nll_nats), sum((own) => own.parts.length)];
    const columns = found.slice(0, MAX_COLUMNS).filter((own) => !own.unknown);
    const along = axis(Math.max(0, ...columns.map((own) => in_unit(own.nll_nats, unit)).filter(Number.isFinite)), unit);
    along.ticks.at(-1).label += ` ${unit}`;
    const level = (own) => LEVELS.filter((border) => own.nll_nats >= border).length;
    const ends = LEVELS.map((border) => String(Number(in_unit(border, unit).toPrecision(2))));
    const values = {
      ...{ unit, vocabulary: null, known: found.length, total, unknown: found.filter((own) => own.unknown).map((own) => own.word.text) },
      summary: known.length ? {
        words: known.length, tokens, total_nll_nats: nats, mean_word_nll_nats: nats / known.length, mean_token_nll_nats: nats / tokens,
        pseudo_perplexity: Math.exp(nats / tokens), most: known.reduce((most, own) => (own.nll_nats > most.nll_nats ? own : most)),
      } : null,
      labels: [...["0", ...ends].slice(0, -1).map((low, at) => `${low}–${ends[at]}`), `${ends.at(-1)}+`],
      chart: columns.length ? { ticks: along.ticks, zero: 0, columns: columns.map((own) => {
        const value = in_unit(own.nll_nats, unit);
        const below = this.config.names(own.wanted)[0];
        return [{ word: own.word.text, value, text: short(value), below, level: level(own), side: "" }, along.mark(value, "", short(value))];
      }) } : null,
    };
    const words = found.slice(start);
    return {
      words: words.map((own) => ({ token: own.word.tokens[0], level: own.unknown ? 0 : level(own), html: this.render("explore/surprise_word", { ...values, own }) })),
      ...{ known: found.length, total, next: found.length < total ? found.length : null },
      html: { story: this.render("explore/surprise", values), table: this.render("explore/surprise_table", { ...values, words }) },
    };
  }
}
