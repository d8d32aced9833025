// The numbers of the page: what a server answers elsewhere (`explore_modes.py: served`), answered here.
import { acted, carried, version } from "./draft.js";
import { Filling } from "./filling.js";
import { addFilters, sentence } from "./formats.js";
import { compared, listed } from "./guesses.js";
import startTemplates, { Environment } from "./minijinja.js";
import { Model, Refused, unpacked } from "./model.js";
import { Views } from "./views.js";
import { Vocabulary } from "./vocabulary.js";

const MOST_CHARACTERS = 20000; // far above any model's limit
const MOST_POINTS = 8; // on the loss curve
const WINDOW = 4; // words of a sentence between two answers
const measured = { text: "", words: [] }; // of the latest sentence without a mask
let loaded = 0;

const ready = start().catch((error) => {
  const failed = error instanceof Refused ? error.message : `The page failed to start: ${error.message ?? error}`;
  postMessage({ kind: "error", notice: failed, html: {}, losses: [] });
  throw new Refused(failed);
});
let work = ready.catch(() => null); // one question after the other

async function start() {
  const config = await (await fetch("config.json")).json();
  const load = (name) => unpacked(name, config.version, (bytes) => {
    loaded += bytes;
    const [done, total] = [loaded, config.bytes].map((size) => (size / 1e6).toFixed(1));
    postMessage({ kind: "busy", notice: `Loading the model: ${done} of ${total} MB`, fraction: loaded / config.bytes });
  });
  const files = ["model.onnx.gz", "ort.wasm.gz", "data.json.gz", "minijinja.wasm.gz"].map(load);
  const [graph, runtime, data, templates] = await Promise.all(files);
  const { tokenizer, sources, ...spelling } = JSON.parse(new TextDecoder().decode(data));
  await startTemplates({ module_or_path: templates });
  Object.assign(config, spelling);
  const vocabulary = new Vocabulary(tokenizer, config);
  const environment = Object.assign(new Environment(), { trimBlocks: true, lstripBlocks: true });
  addFilters(environment, vocabulary);
  environment.addGlobal("live", true);
  for (const [name, source] of Object.entries(sources)) environment.addTemplate(name, source);
  const filling = Object.assign(new Filling(), { model: await Model.open(graph, runtime, config), vocabulary });
  const views = Object.assign(new Views(), { environment, vocabulary, config });
  postMessage({ ready: true });
  return { config, vocabulary, filling, views };
}

// A question of explore.js with what it takes to answer it.
async function prepare(question) {
  const parts = await ready;
  const before = { ...carried(question.draft, question.text, parts.vocabulary), selected: question.selected };
  // A click counts on the text that it was made on.
  const clicked = question.action?.version === version(before.text);
  const draft = clicked ? acted(before, question.action, parts.vocabulary) : before;
  const mask = draft.selected < draft.hidden.length ? draft.selected : 0;
  return { ...parts, draft, mask, version: version(draft.text), text: clicked ? draft.text : question.text };
}

const split = (words) => [...new Set(words.split(/[,\n]/).map((word) => word.trim()).filter(Boolean))];

// The word behind a mask, scored; null if it is not known or cannot be.
const truth = async ({ filling, draft }, { encoding, masks, logs }, mask) =>
  draft.hidden[mask] ? filling.score(encoding, masks[mask].position, draft.hidden[mask], logs[mask]).catch(() => null) : null;

async function answer(question) {
  const message = (kind, notice) => ({ kind, notice, base: "", hidden: [], text: question.text, html: {}, losses: [], masks: 0 });
  if (!question.text.trim()) return message("hint", "Write a sentence, or start from an example.");
  const long = `The text has more than ${MOST_CHARACTERS} characters: shorten it.`;
  if (question.text.length > MOST_CHARACTERS) return message("error", long);
  const parts = await prepare(question);
  const { vocabulary, filling, views, config, draft, mask } = parts;
  const encoding = vocabulary.encode(draft.text);
  const problems = [];
  let [html, losses, filled, hidden] = [{}, [], null, null];
  try {
    vocabulary.check(encoding);
    if (draft.hidden.length) {
      const words = split(question.words).filter((word) => {
        const problem = vocabulary.masks(encoding).map((at) => filling.spelled(encoding, at, word).problem).find(Boolean);
        if (problem) problems.push(`${sentence(problem)}.`);
        return !problem;
      });
      filled = await filling.fill(draft.text, { top_k: question.top_k, words });
      hidden = await truth(parts, filled, mask);
      html = views.mask(filled, mask, question, hidden);
      losses = [views.point(filled, mask, hidden, question.unit)];
    }
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    problems.splice(0, Infinity, sentence(error.message));
  }
  return {
    ...{ kind: problems.length ? "error" : "none", notice: problems.join(" "), version: parts.version, model: config.label },
    ...{ text: parts.text, base: draft.text, hidden: draft.hidden, selected: mask },
    ...{ mask: Boolean(filled), masks: draft.hidden.length, losses, measurable: !problems.length && !filled },
    html: { ...html, ...views.sentence(draft, encoding, filled, mask, hidden) },
  };
}

async function losses(question) {
  const parts = await prepare(question);
  const filled = await parts.filling.fill(parts.draft.text, { top_k: 1 });
  const points = await Array.fromAsync(filled.masks.slice(0, MOST_POINTS), async (_, mask) =>
    parts.views.point(filled, mask, await truth(parts, filled, mask), question.unit));
  return { version: parts.version, points };
}

async function surprise({ start, unit, ...question }) {
  const { draft: { text }, version, vocabulary, filling, views } = await prepare(question);
  const encoding = vocabulary.check(vocabulary.encode(text));
  const words = vocabulary.textWords(encoding);
  if (measured.text !== text) Object.assign(measured, { text, words: [] });
  for (const word of words.slice(measured.words.length, start + WINDOW)) measured.words.push(await filling.surprisal(encoding, word));
  return { version, ...views.surprise(measured.words, start, words.length, unit) };
}

// What `fillmask-ui predict --json` and `surprise --json` print for a text, but for joint fillings.
async function predict({ text, top_k = 5, candidates = [] }) {
  const { filling, config } = await ready;
  const { encoding, masks } = await filling.fill(text, { top_k, words: candidates });
  return { text: encoding.text, model: config.name, signature: config.signature, masks };
}

async function surprisal({ text }) {
  const { vocabulary, filling, config } = await ready;
  const encoding = vocabulary.check(vocabulary.encode(text));
  const characters = (end) => [...text.slice(0, end)].length; // in characters, as in Python
  const words = await Array.fromAsync(vocabulary.textWords(encoding), async (word) => (
    { ...(await filling.surprisal(encoding, word)), word: word.text, start: characters(word.start), end: characters(word.end) }));
  return { text, model: config.name, signature: config.signature, words };
}

async function download(question) {
  const { draft } = await prepare(question);
  const values = await predict({ ...question, text: draft.text, candidates: split(question.words) });
  return { name: "fillmask.json", type: "application/json", text: JSON.stringify(values, null, 2) };
}

const served = {
  ...{ answer, replay: answer, losses, surprise, download, predict, surprisal, joint: () => ({ html: "" }) },
  guess: async (question) => compared(question, await prepare(question)),
  guesses: async (question) => listed(question, await ready),
};

addEventListener("message", ({ data: { name, values }, ports: [port] }) => {
  work = work.then(async () => {
    try {
      port.postMessage({ result: await served[name](values) });
    } catch (failure) {
      const error = failure.message ?? String(failure);
      port.postMessage(name.startsWith("guess") ? { result: { error } } : { error });
    }
  });
});
