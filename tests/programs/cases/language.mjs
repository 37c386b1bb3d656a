import { readFile } from "node:fs/promises";
import { performance } from "node:perf_hooks";
import assert from "node:assert";

class Stack extends Array { top() { return this.at(-1); } }
const stack = Stack.of(1, 2, 3);
console.log(stack.top(), [..."日本🦀"].length, 2n ** 100n, [3, 1, 2].toSorted());
console.log(Object.groupBy ? "groups" : "groups", structuredClone(new Map([[1, { a: [2] }]])), new Intl.NumberFormat("de-DE").format(1234567.89));
async function* numbers() { for (let n = 0; n < 3; n++) { await null; yield n; } }
for await (const n of numbers()) console.log(n);
console.log(await Promise.allSettled([Promise.resolve(1), Promise.reject(new Error("no"))]).then(all => all.map(one => one.status)));
console.log((await readFile(new URL(import.meta.url), "utf8")).startsWith("import"), performance.now() > 0, process.exitCode);
try { assert.deepEqual([1], [2]); } catch (error) { console.log(error.code); }
process.exitCode = 5;
