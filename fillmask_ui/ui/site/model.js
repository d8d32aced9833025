// The model in a worker: its files, and logits at the asked positions of texts.
import * as ort from "./ort.mjs";

export class Refused extends Error {} // told to the reader as it is

// The bytes of a packed file, kept in the cache of this version so that none is loaded twice.
export async function unpacked(name, version, told = () => {}) {
  const cache = await globalThis.caches?.open(`fillmask-${version}`).catch(() => null);
  const kept = await cache?.match(name);
  let parts;
  if (kept) {
    parts = [await kept.arrayBuffer()];
    told(parts[0].byteLength);
  } else {
    const answer = await fetch(name).catch(() => null);
    if (!answer?.ok) throw new Refused(`The file ${name} of this page cannot be loaded (${answer?.status ?? "no answer"}): reload the page.`);
    parts = [];
    for (const reader = answer.body.getReader(); ; ) {
      const { done, value } = await reader.read();
      if (done) break;
      parts.push(value);
      told(value.length);
    }
    await cache?.put(name, new Response(new Blob(parts))).catch(() => null); // there may be no room
  }
  // A server that unpacks `.gz` files by itself has done so.
  const blob = new Blob(parts);
  const start = new Uint8Array(await blob.slice(0, 2).arrayBuffer());
  const packed = start[0] === 0x1f && start[1] === 0x8b;
  const stream = packed ? blob.stream().pipeThrough(new DecompressionStream("gzip")) : blob.stream();
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export class Model {
  constructor(session, config) {
    Object.assign(this, { session, config });
  }

  static async open(graph, runtime, config) {
    if (typeof WebAssembly !== "object") throw new Refused("This browser has no WebAssembly, which runs the model: use another one.");
    Object.assign(ort.env.wasm, { numThreads: 1, wasmBinary: runtime });
    try {
      const session = await ort.InferenceSession.create(graph, { executionProviders: ["wasm"] });
      return new Model(session, config);
    } catch (error) {
      const short = /memory|alloc/i.test(String(error));
      throw new Refused(short ? "This device has too little memory for the model: close other pages, or use another device."
        : `The model's file cannot be read as ONNX: ${String(error.message ?? error).split("\n")[0]}`);
    }
  }

  // Logits, Float32Array [V], at one position of each of some texts of token ids. Texts share a call,
  // unless the scales of activations depend on all that is in a call.
  async logits(texts, positions) {
    if (this.config.alone && texts.length > 1) {
      const found = [];
      for (const [own, text] of texts.entries()) found.push(...(await this.logits([text], [positions[own]])));
      return found;
    }
    const length = Math.max(...texts.map((text) => text.length));
    const feeds = {};
    for (const [name, [role, kind]] of Object.entries(this.config.inputs)) {
      const values = texts.flatMap((text) => Array.from({ length }, (_, place) => this.#value(role, text, place)));
      feeds[name] = tensor(kind, values, [texts.length, length]);
    }
    const places = positions.map((position, row) => row * length + position);
    if (this.config.asked) feeds[this.config.asked] = tensor("int64", places, [places.length]);
    const output = (await this.session.run(feeds, [this.config.output]))[this.config.output];
    const width = output.dims.at(-1);
    const rows = this.config.asked ? places.keys() : places; // of all positions, where it is not cut
    return Array.from(rows, (row) => output.data.slice(row * width, (row + 1) * width));
  }

  #value(role, text, place) {
    const inside = place < text.length;
    if (role === "input_ids") return inside ? text[place] : this.config.pad_id;
    if (role === "attention_mask") return Number(inside);
    if (role !== "position_ids") return 0;
    const first = this.config.first_position; // RoBERTa counts on behind its padding id
    return first ? (inside ? place + first : first - 1) : Math.min(place, text.length - 1);
  }
}

function tensor(kind, values, dims) {
  const data = kind === "int64" ? BigInt64Array.from(values, BigInt) : kind === "int32" ? Int32Array.from(values) : Float32Array.from(values);
  return new ort.Tensor(kind, data, dims);
}
