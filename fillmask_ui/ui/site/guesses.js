// A class's guesses beside the model's, as `filling/guesses.py` and `ui/explore/guess_view.py` have it.
import { general, loss, loss_number, percent } from "./formats.js";
import { Refused } from "./model.js";
import { shares } from "./views.js";

const MODEL_WORDS = 5; // listed although nobody guessed them
const key = (word) => word.trim().split(/\s+/).join(" ").toLowerCase();

function read(piece) {
  const [, typed, amount, sign] = piece.match(/^([^]*?)(?:(?:^|\s|[:=])\s*([+-]?\d+(?:\.\d+)?)\s*(%?))?$/);
  const word = typed.trim().split(/\s+/).join(" ");
  const value = amount === undefined ? 1 : Number(amount);
  if (!word || word.includes("%")) throw new Refused(`'${piece.slice(0, 40)}' is no guess: write a word and, behind it, how many said it or its percent, as in: mat 12, or: mat 60%`);
  if (!(value > 0 && value <= 1e6)) throw new Refused(`'${piece.slice(0, 40)}': the number must be above 0 and at most 1,000,000`);
  return { word, amount: value, percent: Boolean(sign) };
}

// { guesses, percent, people, no_guess }, from what was typed.
export function parse(typed) {
  const found = new Map();
  const pieces = typed.split(/[,;\n]/).map((own) => own.trim()).filter(Boolean).map(read);
  for (const { word, amount } of pieces) {
    const before = found.get(key(word));
    found.set(key(word), { word: before?.word ?? word, amount: (before?.amount ?? 0) + amount });
  }
  const percents = pieces.some((own) => own.percent);
  const bare = pieces.find((own) => !own.percent);
  if (percents && bare) throw new Refused(`'${bare.word}' has no percent and others have one: give all guesses with percents, as in: mat 60%, floor 40%, or none`);
  const total = [...found.values()].reduce((sum, { amount }) => sum + amount, 0);
  if (percents && total > 101) throw new Refused(`the percents add up to ${general(total)}: make them 100 at most, or give how many said each word, as in: mat 12, floor 5`);
  const people = percents ? Math.max(total, 100) : total;
  return { guesses: [...found.values()], percent: percents, people, no_guess: people ? 1 - total / people : 0, total };
}

export function listed(typed, views) {
  const { total, ...found } = parse(typed);
  const guessed = total === 1 ? "1 guess" : `${general(total)} guesses`;
  const count = total && (found.percent ? `${general(Math.max(0, 100 - total))}% of the class made no guess.` : guessed);
  return { error: "", ...found, count: count || "", html: views.render("explore/guess_chips", found) };
}

// Bars, verdict and losses; `truth` may be blank.
export async function compared(typed, truth, text, mask, unit, filling, views) {
  const said = parse(typed);
  if (!said.guesses.length) throw new Refused("nobody has guessed yet: type a word, or several as in: mat 12, floor 5");
  const { encoding, masks, logs } = await filling.fill(text, { top_k: 100 });
  const { candidates, position } = masks[mask];
  const amount = (word) => said.guesses.filter((own) => key(own.word) === key(word)).reduce((sum, own) => sum + own.amount, 0);
  const spelled = new Map(candidates.map(({ word }) => [key(word), word.trim()]).reverse());
  const words = new Map(truth ? [[key(truth), truth]] : []);
  for (const { word } of said.guesses.toSorted((a, b) => b.amount - a.amount)) if (!words.has(key(word))) words.set(key(word), spelled.get(key(word)) ?? word);
  const [scored, left_out] = [new Map(), []];
  for (const word of words.values()) {
    const own = await filling.score(encoding, position, word, logs[mask]).catch(() => null);
    if (own) scored.set(word, own);
    else left_out.push(word);
  }
  const several = [...scored.values()].some(({ parts }) => parts.length > 1);
  const axis = shares();
  const marks = (people, model) =>
    [[people, "candidate"], [model, "reference"]].filter(([p]) => p !== undefined).map(([p, side]) => axis.mark(100 * p, side, percent(p)));
  const row = (name, people, model, parts = 1, hidden = false) => ({
    ...{ name, truth: hidden, key: "", title: "", pressed: false, notes: [], marks: marks(people, model) },
    cells: several && name ? [{ text: String(parts), quiet: parts === 1 }] : [],
  });
  const rows = [...words.values()].map((word) =>
    row(word, amount(word) / said.people, scored.get(word)?.probability, scored.get(word)?.parts.length, Boolean(truth) && key(word) === key(truth)));
  const known = new Map([...scored.values()].filter(({ parts }) => parts.length === 1).map((own) => [own.parts[0].token_id, own.probability]));
  const others = candidates.filter(({ token_id }) => !known.has(token_id)).slice(0, MODEL_WORDS);
  rows.push(...others.map((own) => row(own.word.trim() || own.token, 0, own.probability)));
  const rest = [...known.values(), ...others.map(({ probability }) => probability)].reduce((left, own) => left - own, 1);
  rows.push({ ...row("", said.no_guess, Math.max(0, rest)), name: said.no_guess ? "no guess, all other words" : "all other words" });
  const model = scored.get(truth)?.nll_nats ?? null;
  const share = amount(truth) / said.people;
  const more = Math.log((said.people + (said.percent ? 0 : 1)) / (amount(truth) + 1));
  const losses = truth ? { word: truth, people: share ? -Math.log(share) : Infinity, one_more: more, model } : null;
  const point = model === null ? null : [{ mask: 0, word: truth, hidden: true, probability: Math.exp(-model), nll_nats: model, texts: [percent(Math.exp(-model)), loss(model, unit)] }];
  return views.render("guess_result", { rows, axis, losses, said, left_out, unit, infinite: Infinity, several,
    verdict: losses ? verdict(losses, unit) : "", point: point && JSON.stringify(point) });
}

function verdict({ word, people, model }, unit) {
  if (model === null) return `The model cannot spell “${word}”, so only the class has a loss.`;
  if (loss(people, unit) === loss(model, unit)) return `Equally surprised: ${loss(people, unit)} each.`;
  const [low, high] = [Math.min(people, model), Math.max(people, model)];
  return `Less surprised: the ${people < model ? "class" : "model"} (${loss(low, unit)} against ${loss_number(high, unit)}).`;
}
