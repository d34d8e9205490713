/** Packs that are damaged or gone: their producers run again, and no others. */
import { deepEqual, ok } from "node:assert/strict";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { col, type Job } from "#doors/batch/api/batch.ts";
import { NodeProcess } from "#e2e/store/node-process.ts";
import { clearAway } from "#testing/clear-away.ts";
import { slowQuery, stagedIn, viewOf, type View } from "./fault-lab.ts";
import { apiAsks, newFolder, writeEvents } from "./lab.ts";

const folder = await newFolder();
const oracle = await writeEvents(folder, { files: 8, rows: 40_000 });
const data = join(folder, "data");
const node = await NodeProcess.open(data, { cluster: { shards: 1 }, worker: { slots: 2 } });
after(async () => {
  await node[Symbol.asyncDispose]();
  clearAway(folder);
});
apiAsks(data);

const staged = stagedIn(folder);
const query = slowQuery(folder);
const view = (job: Job<object>): Promise<View> => viewOf(job, node);

describe("a query in stages", { timeout: 300_000 }, () => {
  test("whose packs were damaged and deleted has exactly those written again", async () => {
    await (await query.submit(staged)).done();
    await node.stop();
    await rm(join(data, "batch", "packs"), { recursive: true });
    const packs = await mapPacks();
    ok(packs.length >= 2, `${packs.length} packs are files of their own`);
    const [flipped = "", deleted = ""] = packs;
    const bytes = await readFile(flipped);
    bytes[Math.floor(bytes.length / 2)] = (bytes[Math.floor(bytes.length / 2)] ?? 0) ^ 0xff;
    await rm(flipped);
    await writeFile(flipped, bytes);
    await rm(deleted);
    await node.start();
    // Another last stage, which has to read all packs.
    const other = query.select({ key: col("key"), twice: col("n").mul(2) });
    const job = await other.submit({ ...staged, fresh: false });
    await job.done();
    const { result, stages } = await view(job);
    deepEqual([stages[0]?.tasks, stages[0]?.reused], [8, 6]);
    const again = await other.submit(staged);
    await again.done();
    deepEqual(result, (await view(again)).result);
  });
});

/** Files of the store that hold what map tasks wrote: Parquet with a column `p`. */
async function mapPacks(): Promise<readonly string[]> {
  const found: string[] = [];
  for (const entry of await readdir(join(data, "blobs"), { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const head = (await readFile(path)).subarray(0, 4).toString();
    if (head !== "PAR1") continue;
    const columns = await oracle.runAndReadAll(`select name from parquet_schema('${path}')`);
    if (columns.getRows().some(([name]) => name === "p")) found.push(path);
  }
  return found.toSorted();
}
