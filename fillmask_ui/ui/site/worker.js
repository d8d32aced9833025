// The numbers of the page: what a server answers elsewhere (`explore_modes.py: SERVED`), answered here.
import { acted, carried, version } from "./draft.js";
import { Filling } from "./filling.js";
import { filters } from "./formats.js";
import { compared, listed } from "./guesses.js";
import startTemplates, { Environment } from "./minijinja.js";
import { Model, Refused, unpacked } from "./model.js";
import { Views } from "./views.js";
import { Vocabulary } from "./vocabulary.js";

const MOST_CHARACTERS = 20000; // far above any model's limit
const WINDOW = 4; // words of a sentence between two answers
const known = { text: "", found: [] }; // of the latest sentence without a mask
let [loaded, failed] = [0, null];
let total = 0;
let work = Promise.resolve(); // one question after the other

const ready = start().catch((error) => {
  failed = error instanceof Refused ? error.message : `The page failed to start: ${error.message ?? error}`;
  postMessage({ failed });
});

async function start() {
  const config = await (await fetch("config.json")).json();
  total = config.bytes;
  const told = (bytes) => {
    loaded += bytes;
    postMessage({ loaded, total });
  };
  const load = (name) => unpacked(name, config.version, told);
  const text = async (name) => new TextDecoder().decode(await load(name));
  const files = [load("model.onnx.gz"), load("ort.wasm.gz"), text("data.json.gz"), load("minijinja.wasm.gz")];
  const [graph, runtime, data, templates] = await Promise.all(files);
  const { tokenizer, options, sources, ...spelling } = JSON.parse(data);
  await startTemplates({ module_or_path: templates });
  Object.assign(config, spelling);
  const vocabulary = new Vocabulary(tokenizer, options, config);
  const environment = new Environment();
  Object.assign(environment, { trimBlocks: true, lstripBlocks: true });
  const ours = filters(vocabulary);
  for (const [name, filter] of Object.entries(ours)) environment.addFilter(name, filter);
  environment.addGlobal("live", true);
  for (const [name, source] of Object.entries(sources)) environment.addTemplate(name, source);
  const filling = new Filling(await Model.open(graph, runtime, config), vocabulary);
  postMessage({ ready: true });
  return { config, vocabulary, filling, views: new Views(environment, filling, { ...config, names: ours.names }) };
}

// A question of explore.js with what it takes to answer it.
async function asked(question) {
  const parts = await ready;
  const draft = carried(question.draft, question.text, parts.vocabulary);
  return { ...parts, draft, mask: question.selected < draft.hidden.length ? question.selected : 0 };
}

const split = (words) => [...new Set(words.split(/[,\n]/).map((own) => own.trim()).filter(Boolean))];

// The word behind a mask, scored; null if it is not known or cannot be.
const truth = async ({ filling, draft }, { encoding, masks, logs }, mask) =>
  draft.hidden[mask] ? filling.score(encoding, masks[mask].position, draft.hidden[mask], logs[mask]).catch(() => null) : null;

async function answer(question) {
  const told = (kind, notice) => ({ kind, notice, base: "", hidden: [], text: question.text, html: {}, losses: [], masks: 0 });
  if (!question.text.trim()) return told("hint", "Write a sentence, or start from an example.");
  if (question.text.length > MOST_CHARACTERS) return told("error", `The text has more than ${MOST_CHARACTERS} characters: shorten it.`);
  let parts = await asked(question);
  const { vocabulary, filling, views, config } = parts;
  if (question.action && version(parts.draft.text) === question.action.version) {
    const { selected, ...draft } = acted(parts.draft, question.action, question.selected, vocabulary);
    question = { ...question, text: draft.text, selected };
    parts = { ...parts, draft, mask: selected < draft.hidden.length ? selected : 0 };
  }
  const { draft, mask } = parts;
  const encoding = vocabulary.encode(draft.text);
  const plain = { text: question.text, base: draft.text, hidden: draft.hidden, version: version(draft.text), model: config.label, selected: mask, masks: draft.hidden.length, losses: [], mask: null };
  let [notice, html, found, hidden] = ["", {}, null, null];
  try {
    vocabulary.check(encoding);
    if (draft.hidden.length) {
      const { positions } = filling.read(draft.text);
      const words = split(question.words).filter((word) => {
        try {
          return positions.every((at) => filling.spelled(encoding, at, word));
        } catch (error) {
          notice += ` ${error.message[0].toUpperCase()}${error.message.slice(1)}.`;
          return false;
        }
      });
      found = await filling.fill(draft.text, { top_k: question.top_k, words });
      hidden = await truth(parts, found, mask);
      html = views.mask(found, mask, question, hidden);
      const own = found.masks[mask];
      const candidates = own.candidates.map(({ token_id, word, probability, nll_nats }) => ({ id: token_id, word, probability, nll_nats }));
      const shown = { candidates, entropy_nats: own.entropy_nats, perplexity: Math.exp(own.entropy_nats) };
      Object.assign(plain, { mask: shown, truth: hidden, losses: [views.point(found, mask, hidden, question.unit)] });
    }
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    notice = error.message[0].toUpperCase() + error.message.slice(1);
  }
  const strip = views.strip(draft, encoding, found, mask, hidden);
  return { ...plain, kind: notice ? "error" : "none", notice: notice.trim(), measurable: !notice && !plain.mask, html: { ...html, strip, tokens: views.tokens(encoding) } };
}

async function losses(question) {
  const parts = await asked(question);
  const found = await parts.filling.fill(parts.draft.text, { top_k: 1 });
  const points = [];
  for (let mask = 0; mask < Math.min(8, found.masks.length); mask += 1) points.push(parts.views.point(found, mask, await truth(parts, found, mask), question.unit));
  return { version: version(parts.draft.text), points };
}

async function surprise(question) {
  const { draft, filling, views } = await asked(question);
  const { encoding, words } = filling.words(draft.text);
  if (known.text !== draft.text) Object.assign(known, { text: draft.text, found: [] });
  while (known.found.length < Math.min(words.length, question.start + WINDOW)) known.found.push(await filling.surprisal(encoding, words[known.found.length]));
  return { version: version(draft.text), ...views.surprise(known.found, question.start, words.length, question.unit) };
}

async function guess(question) {
  const { draft, mask, filling, views } = await asked(question);
  const word = (draft.hidden[mask] ?? question.truth.trim()).slice(0, 100);
  return { error: "", html: await compared(question.guesses, word, draft.text, mask, question.unit, filling, views) };
}

// What `fillmask-ui predict --json` and `surprise --json` print for a text, but for joint fillings.
async function predict({ text, top_k = 5, candidates = [] }) {
  const { filling, config } = await ready;
  const { encoding, masks } = await filling.fill(text, { top_k, words: candidates });
  return { text: encoding.text, model: config.name, signature: config.signature, masks };
}

async function surprisal({ text }) {
  const { filling, config } = await ready;
  const { encoding, words } = filling.words(text);
  const places = (word) => [word.start, word.end].map((end) => [...text.slice(0, end)].length); // in characters, as in Python
  const found = [];
  for (const own of words) {
    const { word, ...numbers } = await filling.surprisal(encoding, own);
    const [start, end] = places(word);
    found.push({ word: word.text, start, end, ...numbers });
  }
  return { text, model: config.name, signature: config.signature, words: found };
}

async function download(question) {
  const text = JSON.stringify(await predict({ ...question, text: (await asked(question)).draft.text, candidates: split(question.words) }), null, 2);
  return { name: "fillmask.json", type: "application/json", text };
}

const guesses = async (question) => listed(question.guesses, (await ready).views);
const served = { answer, losses, surprise, guess, guesses, download, predict, surprisal, joint: () => ({ html: "" }) };

addEventListener("message", ({ data: { id, name, values } }) => {
  work = work.then(async () => {
    try {
      await ready;
      if (failed) throw new Refused(failed);
      postMessage({ id, result: await served[name](values) });
    } catch (error) {
      const told = name.startsWith("guess") ? { result: { error: error.message } } : { error: error.message ?? String(error) };
      postMessage({ id, ...told });
    }
  });
});
