/** `node bin/node.js src/doors/batch/testing/tpch-main.ts [scale]`: the 22 queries, staged against a single process. */
import { judgeTpch } from "./tpch.ts";

const [scale = "0.05"] = process.argv.slice(2);
const rows = await judgeTpch(Number(scale), (line) => console.log(line));
const wrong = rows.filter(({ isEqual }) => !isEqual);
console.log(JSON.stringify({ scale, queries: rows.length, wrong: wrong.map(({ query }) => query) }));
process.exitCode = wrong.length === 0 ? 0 : 1;
