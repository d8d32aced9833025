// The model in a worker: its files, and logits at the asked positions of texts.
import * as ort from "./ort.mjs";

export class Refused extends Error {} // the reader sees its message

// The bytes of a packed file, kept in the cache of this version so that none is loaded twice.
export async function unpacked(name, version, report) {
  const cache = await globalThis.caches?.open(`fillmask-${version}`).catch(() => null);
  const cached = await cache?.match(name);
  const answer = cached ?? (await fetch(name).catch(() => null));
  const status = answer?.status ?? "no answer";
  if (!answer?.ok) throw new Refused(`The file ${name} of this page cannot be loaded (${status}): reload the page.`);
  const transform = (bytes, out) => {
    report(bytes.length);
    out.enqueue(bytes);
  };
  const blob = await new Response(answer.body.pipeThrough(new TransformStream({ transform }))).blob();
  if (!cached) await cache?.put(name, new Response(blob)).catch(() => null); // there may be no room
  // A server that unpacks `.gz` files by itself has done so.
  const start = new Uint8Array(await blob.slice(0, 2).arrayBuffer());
  const packed = start[0] === 0x1f && start[1] === 0x8b;
  const stream = packed ? blob.stream().pipeThrough(new DecompressionStream("gzip")) : blob.stream();
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export class Model {
  static async open(graph, runtime, config) {
    const none = "This browser has no WebAssembly, which runs the model: use another one.";
    if (typeof WebAssembly !== "object") throw new Refused(none);
    Object.assign(ort.env.wasm, { numThreads: 1, wasmBinary: runtime });
    try {
      const session = await ort.InferenceSession.create(graph, { executionProviders: ["wasm"] });
      return Object.assign(new Model(), { session, config });
    } catch (error) {
      const short = /memory|alloc/i.test(String(error));
      throw new Refused(short ? "This device has too little memory for the model: close other pages, or use another device."
        : `The model's file cannot be read as ONNX: ${String(error.message ?? error).split("\n")[0]}`);
    }
  }

  // Logits, Float32Array [V], for views: the token ids of a text and one position in it. Views share a
  // call, unless the scales of activations depend on all that is in a call.
  async logits(views) {
    const { alone, inputs, asked, output } = this.config;
    if (alone && views.length > 1) return (await Array.fromAsync(views, (view) => this.logits([view]))).flat();
    const length = Math.max(...views.map(([ids]) => ids.length));
    const feeds = {};
    for (const [name, [role, kind]] of Object.entries(inputs)) {
      const values = views.flatMap(([ids]) => Array.from({ length }, (_, index) => this.#value(role, ids, index)));
      feeds[name] = new ort.Tensor(kind, values, [views.length, length]);
    }
    const positions = views.map(([, position], row) => row * length + position);
    if (asked) feeds[asked] = new ort.Tensor("int64", positions, [positions.length]);
    const { data, dims } = (await this.session.run(feeds, [output]))[output];
    const rows = asked ? positions.keys() : positions; // of all positions, where it is not cut
    return Array.from(rows, (row) => data.slice(row * dims.at(-1), (row + 1) * dims.at(-1)));
  }

  #value(role, ids, index) {
    const inside = index < ids.length;
    if (role === "input_ids") return ids[index] ?? this.config.pad_id;
    if (role === "attention_mask") return Number(inside);
    if (role !== "position_ids") return 0;
    const first = this.config.first_position; // RoBERTa counts on behind its padding id
    return first ? (inside ? index + first : first - 1) : Math.min(index, ids.length - 1);
  }
}
