// Runs an ONNX file in WebAssembly on one thread, and writes the logits at the asked positions.
//
// node web_logits.mjs JOB.json, an object of
//   model: path of the file; external: [[location, path]] of its weights in other files;
//   level: disabled, basic, extended or all; logits: name of the output [1, T, V];
//   outputs: path to write;
//   calls: [{feeds: {name: [type, dims, bytes in base64]}, positions: [...]}], one a text.
// Writes V numbers for each position, in order; prints their type, V and the library's version.
// Ends with 3 if Node does not find onnxruntime-web, with 1 and a line if the file does not run.
import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { createRequire } from "node:module";

const ARRAYS = {
  int64: BigInt64Array,
  int32: Int32Array,
  float32: Float32Array,
  float16: globalThis.Float16Array ?? Uint16Array,
  bool: Uint8Array,
};

function library() {
  try {
    return createRequire(import.meta.url)("onnxruntime-web"); // looks into NODE_PATH, too
  } catch (error) {
    if (error.code !== "MODULE_NOT_FOUND") throw error;
    process.exit(3);
  }
}

async function run(job) {
  const ort = library();
  ort.env.wasm.numThreads = 1;
  ort.env.logLevel = "error";
  const session = await ort.InferenceSession.create(readFileSync(job.model), {
    executionProviders: ["wasm"],
    graphOptimizationLevel: job.level,
    externalData: job.external.map(([path, file]) => ({ path, data: readFileSync(file) })),
  });
  const target = openSync(job.outputs, "w");
  let type, width;
  for (const { feeds, positions } of job.calls) {
    const tensors = {};
    for (const [name, [kind, dims, bytes]] of Object.entries(feeds)) {
      const { buffer } = new Uint8Array(Buffer.from(bytes, "base64")); // a copy is aligned
      tensors[name] = new ort.Tensor(kind, new ARRAYS[kind](buffer), dims);
    }
    const logits = (await session.run(tensors, [job.logits]))[job.logits];
    const { buffer, byteOffset, BYTES_PER_ELEMENT } = logits.data;
    ({ type } = logits);
    width = logits.dims[2];
    const size = width * BYTES_PER_ELEMENT;
    for (const position of positions) {
      writeSync(target, new Uint8Array(buffer, byteOffset + position * size, size));
    }
  }
  closeSync(target);
  console.log(JSON.stringify({ type, width, version: ort.env.versions.web }));
}

try {
  await run(JSON.parse(readFileSync(process.argv[2], "utf8")));
} catch (error) {
  console.error(String(error?.message ?? error).split("\n")[0]);
  process.exit(1);
}
