// What onnxruntime-web computes with ONNX files: node open.cjs FILE..., a line of JSON for each.
const fs = require("node:fs");
const path = require("node:path");
const ort = require("onnxruntime-web"); // of NODE_PATH

async function firstLogits(file) {
    const beside = path.join(path.dirname(file), "model.safetensors");
    const weights = fs.existsSync(beside) ? [{ path: path.basename(beside), data: fs.readFileSync(beside) }] : [];
    const session = await ort.InferenceSession.create(fs.readFileSync(file), { externalData: weights });
    const ones = () => new ort.Tensor("int64", new BigInt64Array(3).fill(1n), [1, 3]);
    const feeds = Object.fromEntries(session.inputNames.map((name) => [name, ones()]));
    const { logits } = await session.run(feeds);
    return [...logits.data.slice(0, logits.dims[2])];
}

async function main() {
    ort.env.wasm.numThreads = 1;
    for (const file of process.argv.slice(2)) console.log(JSON.stringify(await firstLogits(file)));
}

main();
