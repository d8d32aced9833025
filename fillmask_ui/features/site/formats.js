// Numbers and names as `show/numbers.py` and `show/words.py` write them: the filters of the templates.
export const LETTER = /^[\p{L}\p{N}]/u;
export const sum = (list, of) => list.reduce((total, item, at) => total + of(item, at), 0);
export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

export const grouped = (value, digits = 0) =>
  value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
export const general = (value) => Number(value.toPrecision(6)).toLocaleString("en-US", { maximumSignificantDigits: 10 });
export const in_unit = (nats, unit) => (unit === "bits" ? nats / Math.LN2 : nats);
export const loss_number = (nats, unit) => (Number.isFinite(nats) ? grouped(in_unit(nats, unit), 3) : "infinite");
export const loss = (nats, unit) => loss_number(nats, unit) + (Number.isFinite(nats) ? ` ${unit}` : "");

export function percent(probability) {
  const value = 100 * probability;
  if (value > 0 && value < 1e-6) return "< 0.000001%";
  if (!value || Number.isNaN(value)) return value === 0 ? "0%" : "";
  return `${value.toFixed(value >= 1 ? 1 : 1 - Math.floor(Math.log10(value)))}%`;
}

const three_digits = (value) => grouped(value, Math.max(0, 2 - Math.floor(Math.log10(value))));
const as_unsure = (perplexity) =>
  perplexity < 1.5 ? "nearly certain of one word" : `as uncertain as ${grouped(perplexity)} equally likely words`;

// Python's `%`: what the templates use of it.
const format = (form, ...values) =>
  form.replace(/%(?:\.(\d))?([dsgf])/g, (_, digits, kind) => {
    const value = values.shift();
    return kind === "f" ? Number(value).toFixed(digits ?? 6) : String(value);
  });

// Names of candidates; two of the same name show their tokens.
export function candidate_names(candidates, vocabulary) {
  const names = candidates.map(({ token, word, token_id }) =>
    word.trim() ? (vocabulary.isEnding(token_id) ? `…${word}` : word) : token);
  return names.map((name, at) => (names.indexOf(name) === names.lastIndexOf(name) ? name : candidates[at].token));
}

export function addFilters(environment, vocabulary) {
  const names = (candidates) => candidate_names(candidates, vocabulary);
  const guesses = (candidates) =>
    names(candidates).slice(0, 3).map((name, at) => `${name} ${percent(candidates[at].probability)}`).join(", ");
  const factors = (parts, unit) => parts.map((part) => `${part.token} ${loss_number(part.nll_nats, unit)}`).join(" + ");
  const filters = { grouped, general, in_unit, loss_number, loss, percent, three_digits, as_unsure, format };
  for (const [name, filter] of Object.entries(filters)) environment.addFilter(name, filter);
  // Records come into a filter as Maps.
  for (const [name, filter] of Object.entries({ names, guesses, factors })) {
    environment.addFilter(name, (records, ...rest) => filter(records.map(Object.fromEntries), ...rest));
  }
}
