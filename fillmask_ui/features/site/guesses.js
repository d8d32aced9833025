// A class's guesses beside the model's, as `filling/guesses.py` and `ui/explore/guess_view.py` have it.
import { general, loss, loss_number, percent, sum } from "./formats.js";
import { Refused } from "./model.js";
import { axis } from "./views.js";

const MODEL_WORDS = 5; // listed although nobody guessed them
const spaced = (word) => word.trim().split(/\s+/).join(" ");
const key = (word) => spaced(word).toLowerCase();

function read(entry) {
  const [, typed, amount, sign] = entry.match(/^([^]*?)(?:(?:^|\s|[:=])\s*([+-]?\d+(?:\.\d+)?)\s*(%?))?$/);
  const [word, value, named] = [spaced(typed), Number(amount ?? 1), `'${entry.slice(0, 40)}'`];
  const how = "write a word and, behind it, how many said it or its percent, as in: mat 12, or: mat 60%";
  if (!word || word.includes("%")) throw new Refused(`${named} is no guess: ${how}`);
  if (!(value > 0 && value <= 1e6)) throw new Refused(`${named}: the number must be above 0 and at most 1,000,000`);
  return { word, amount: value, percent: Boolean(sign) };
}

// { guesses, percent, people, no_guess, total }, from what was typed.
function parse(typed) {
  const entries = typed.split(/[,;\n]/).map((entry) => entry.trim()).filter(Boolean).map(read);
  const repeated = [...Map.groupBy(entries, ({ word }) => key(word)).values()];
  const guesses = repeated.map((group) => ({ word: group[0].word, amount: sum(group, ({ amount }) => amount) }));
  const percents = entries.some((entry) => entry.percent);
  const bare = percents && entries.find((entry) => !entry.percent);
  const how = "give all guesses with percents, as in: mat 60%, floor 40%, or none";
  if (bare) throw new Refused(`'${bare.word}' has no percent and others have one: ${how}`);
  const total = sum(guesses, ({ amount }) => amount);
  const most = "make them 100 at most, or give how many said each word, as in: mat 12, floor 5";
  if (percents && total > 101) throw new Refused(`the percents add up to ${general(total)}: ${most}`);
  const people = percents ? Math.max(total, 100) : total;
  return { guesses, percent: percents, people, no_guess: people ? 1 - total / people : 0, total };
}

export function listed(question, { views }) {
  const { guesses, percent: percents, total } = parse(question.guesses);
  const count = percents ? `${general(Math.max(0, 100 - total))}% of the class made no guess.`
    : total === 1 ? "1 guess" : `${general(total)} guesses`;
  const html = views.render("explore/guess_chips", { guesses, percent: percents });
  return { error: "", guesses, percent: percents, count: total ? count : "", html };
}

// Bars, verdict and losses; the true word may be blank.
export async function compared({ unit, ...question }, { draft, mask, filling, views }) {
  const parsed = parse(question.guesses);
  const truth = (draft.hidden[mask] ?? question.truth.trim()).slice(0, 100);
  if (!parsed.guesses.length) throw new Refused("nobody has guessed yet: type a word, or several as in: mat 12, floor 5");
  const filled = await filling.fill(draft.text, { top_k: 100 });
  const { candidates, position } = filled.masks[mask];
  // The hidden word, then the guesses as the model spells them, each word once.
  const spelled = new Map(candidates.map(({ word }) => [key(word), word.trim()]).reverse());
  const guessed = parsed.guesses.toSorted((a, b) => b.amount - a.amount).filter(({ word }) => key(word) !== key(truth));
  const words = [truth, ...guessed.map(({ word }) => spelled.get(key(word)) ?? word)].filter(Boolean);
  const share = (word) => (parsed.guesses.find((guess) => key(guess.word) === key(word))?.amount ?? 0) / parsed.people;
  // A word that the model cannot spell has null.
  const scores = await Array.fromAsync(words, (word) =>
    filling.score(filled.encoding, position, word, filled.logs[mask]).catch(() => null));
  const several = scores.some((score) => score?.parts.length > 1);
  const along = axis(100, "%", 0);
  along.ticks[0].label += "%";
  const row = (name, people, model, parts = 1, hidden = false) => ({
    ...{ name, truth: hidden, cells: several && parts ? [{ text: String(parts), quiet: parts === 1 }] : [] },
    marks: [[people, "candidate"], [model, "reference"]].filter(([p]) => p !== undefined)
      .map(([p, role]) => along.mark(100 * p, role, percent(p))),
  });
  const rows = words.map((word, at) =>
    row(word, share(word), scores[at]?.probability, scores[at]?.parts.length, word === truth));
  const singles = scores.filter((score) => score?.parts.length === 1);
  const scored = new Map(singles.map(({ parts, probability }) => [parts[0].token_id, probability]));
  const unguessed = candidates.filter(({ token_id }) => !scored.has(token_id)).slice(0, MODEL_WORDS);
  rows.push(...unguessed.map(({ word, token, probability }) => row(word.trim() || token, 0, probability)));
  const remaining = 1 - sum([...scored.values(), ...unguessed.map(({ probability }) => probability)], (value) => value);
  rows.push(row(`${parsed.no_guess ? "no guess, " : ""}all other words`, parsed.no_guess, Math.max(0, remaining), 0));
  const truth_score = truth ? scores[0] : null;
  const one_more = Math.log((parsed.people + (parsed.percent ? 0 : 1)) / (share(truth) * parsed.people + 1));
  const losses = truth ? { word: truth, people: Math.log(1 / share(truth)), one_more, model: truth_score?.nll_nats ?? null } : null;
  const left_out = words.filter((_, at) => !scores[at]);
  const verdict = losses ? verdict_of(losses, unit) : "";
  const points = losses ? [["model", "reference", losses.model], ["class", "candidate", losses.people]]
    .filter(([, , nll_nats]) => Number.isFinite(nll_nats))
    .map(([word, role, nll_nats]) => ({ word, role, nll_nats, probability: Math.exp(-nll_nats) })) : [];
  const point = points.length ? JSON.stringify(points) : null;
  const values = { rows, axis: along, losses, class_guesses: parsed, left_out, unit, infinite: Infinity, several, verdict, point };
  return { error: "", html: views.render("explore/guess_result", values) };
}

function verdict_of({ word, people, model }, unit) {
  if (model === null) return `The model cannot spell “${word}”, so only the class has a loss.`;
  if (loss(people, unit) === loss(model, unit)) return `A tie: both have a loss of ${loss(people, unit)}.`;
  const [low, high] = [Math.min(people, model), Math.max(people, model)];
  return `The ${people < model ? "class" : "model"} wins: loss ${loss_number(low, unit)} against ${loss(high, unit)}.`;
}
