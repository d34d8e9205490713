/**
 * `npm run swarm:sim -- --machines 10000`: a broadcast to many machines, with the product's tracker, fetchers and
 * pacing in virtual time. Prints how near it comes to the best possible time, which no run may beat.
 */
import { parseArgs } from "node:util";
import { describeBroadcast, simulateBroadcast } from "./broadcast.ts";

const { values } = parseArgs({
  options: {
    machines: { type: "string", default: "1000,10000" },
    gib: { type: "string", default: "10" },
    "unit-mib": { type: "string" },
    seed: { type: "string", default: "1" },
    calm: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});

let isBad = false;
for (const text of values.machines.split(",")) {
  const machines = Number(text);
  const unitMib = values["unit-mib"] ?? (machines > 100_000 ? "32" : machines > 10_000 ? "16" : "4");
  const result = simulateBroadcast({
    machines,
    sizeBytes: Number(values.gib) * 2 ** 30,
    unitBytes: Number(unitMib) * 2 ** 20,
    seed: values.seed,
    isCalm: values.calm,
  });
  isBad ||= result.isFasterThanBound || result.unfinished > 0;
  process.stdout.write(`${values.json ? JSON.stringify(result) : describeBroadcast(result).join("\n")}\n`);
}
process.exitCode = isBad ? 1 : 0;
