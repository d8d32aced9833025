// Numbers and names as `show/numbers.py` and `show/words.py` write them: the filters of the templates.
const grouped = (value, digits = 0) => value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
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

function three_digits(value) {
  if (value == null) return "";
  const places = [100, 10, 1].findIndex((least) => Math.abs(value) >= least);
  return grouped(value, places < 0 ? 3 : places);
}

const as_unsure = (perplexity) => (perplexity < 1.5 ? "nearly sure of one word" : `as unsure as among ${grouped(perplexity)} equal words`);

// Python's `%`: what the templates use of it.
function format(form, ...values) {
  const next = values[Symbol.iterator]();
  return form.replace(/%(%|d|s|g|(?:\.(\d+))?f)/g, (_, kind, digits) => {
    if (kind === "%") return "%";
    const value = next.next().value;
    return kind.endsWith("f") ? Number(value).toFixed(Number(digits ?? 6)) : String(value);
  });
}

// A record comes into a filter as a Map.
const read = (record, name) => (record instanceof Map ? record.get(name) : record[name]);

export function filters(vocabulary) {
  const name = (own) => {
    const [token, word, id] = ["token", "word", "token_id"].map((field) => read(own, field));
    if (!word.trim()) return token;
    return vocabulary.isContinuation(id) && /^[\p{L}\p{N}]/u.test(word) ? `…${word}` : word;
  };
  const names = (candidates) => {
    const all = candidates.map(name);
    return all.map((own, at) => (all.indexOf(own) === all.lastIndexOf(own) ? own : read(candidates[at], "token")));
  };
  const guesses = (candidates) =>
    names(candidates).slice(0, 3).map((own, at) => `${own} ${percent(read(candidates[at], "probability"))}`).join(", ");
  const factors = (parts, unit) =>
    parts.map((part) => `${read(part, "token")} ${loss_number(read(part, "nll_nats"), unit)}`).join(" + ");
  return { grouped, general, in_unit, loss_number, loss, percent, three_digits, as_unsure, format, names, guesses, factors };
}
