/**
 * `node bin/node.js src/h2/testing/fuzz.ts --frames N --seed S` sends damaged frames to the connection machine and
 * damaged header blocks to HPACK until N frames have been sent. Prints frames, frames/s, and how much more memory is
 * held at the end than after the first tenth. A failure names its run; `--run R` repeats only that run.
 */
import { parseArgs } from "node:util";
import { fuzzHpack } from "./fuzz-hpack.ts";
import { FuzzRun } from "./fuzz-run.ts";
import { heldBytes } from "./peer.ts";

const framesOfRunMax = 1_000;
const blocksOfRunMax = 20;

export type FuzzResult = {
  readonly frames: number;
  readonly blocks: number;
  readonly runs: number;
  readonly tookMs: number;
  readonly grownBytes: number;
};

export function fuzz({ frames, seed, run }: { frames: number; seed: string; run?: number | undefined }): FuzzResult {
  const startedMs = performance.now();
  let [given, blocks, runs] = [0, 0, run ?? 0];
  let heldEarly: number | undefined;
  do {
    try {
      const one = new FuzzRun(`${seed}:${runs}`);
      one.run(framesOfRunMax);
      given += one.framesGiven;
      blocks += fuzzHpack(`${seed}:${runs}`, blocksOfRunMax);
    } catch (error) {
      throw new Error(`fuzz: run ${runs} failed; replay: --seed ${seed} --run ${runs}`, { cause: error });
    }
    runs += 1;
    if (heldEarly === undefined && given >= frames / 10) heldEarly = heldBytes();
  } while (given < frames && run === undefined);
  const tookMs = performance.now() - startedMs;
  return { frames: given, blocks, runs, tookMs, grownBytes: heldBytes() - (heldEarly ?? 0) };
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      frames: { type: "string", default: "1000000" },
      seed: { type: "string", default: String(Date.now() % 1_000_000) },
      run: { type: "string" },
    },
  });
  const { seed } = values;
  const run = values.run === undefined ? undefined : Number(values.run);
  console.log(`fuzz: seed ${seed}`);
  const { frames, blocks, runs, tookMs, grownBytes } = fuzz({ frames: Number(values.frames), seed, run });
  const perSecond = Math.round((frames / tookMs) * 1_000);
  console.log(`fuzz: ${frames} frames on ${runs} connections, ${blocks} header blocks, ${perSecond} frames/s`);
  console.log(`fuzz: holds ${(grownBytes / 1024).toFixed(0)} KiB more than after the first tenth`);
}
