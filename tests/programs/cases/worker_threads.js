const { Worker, isMainThread, parentPort, workerData } = require("worker_threads");
if (isMainThread) {
  Promise.all([1, 2, 3, 4].map(n => new Promise((resolve, reject) => {
    const worker = new Worker(__filename, { workerData: n });
    worker.on("message", resolve).on("error", reject);
  }))).then(results => console.log(results));
  const shared = new Int32Array(new SharedArrayBuffer(8));
  Atomics.add(shared, 0, 5);
  console.log(Atomics.load(shared, 0));
} else {
  let sum = 0;
  for (let i = 0; i < 1e5 * workerData; i++) sum += i;
  parentPort.postMessage([workerData, sum]);
}
