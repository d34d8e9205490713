/**
 * A worker's node is killed while its task prints: what any reader saw, and whatever else was acknowledged, is read
 * from another node, none of it twice.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { logsOfJob, submitJob } from "#api/jobs.ts";
import { NodeProcess } from "#e2e/store/node-process.ts";
import { callEndpoint, type Fetch } from "#http/client.ts";
import { until } from "#testing/until.ts";

export type KillReport = {
  /** Read before the kill, and of the attempt that was killed in all. */
  readonly seenBytes: number;
  readonly keptBytes: number;
  readonly wholeBytes: number;
  readonly tookMs: number;
};

const lineBytes = 64;
const chunks = 20;

const lineOf = (attempt: number, i: number): string => `${attempt} ${String(i).padStart(10, "0")} `.padEnd(63, "x");

/** What attempt `attempt` prints. */
export const expected = (attempt: number, lines: number): string => {
  let text = "";
  for (let i = 0; i < lines; i += 1) text += `${lineOf(attempt, i)}\n`;
  return text;
};

function printing(lines: number): string {
  const each = Math.ceil(lines / chunks);
  const filler = "x".repeat(lineOf(1, 0).length - 13);
  const awk = `awk -v a=$MILLRACE_ATTEMPT -v c=$c 'BEGIN { for (i = c * ${each}; i < (c + 1) * ${each} && i < ${lines}; i++) printf "%d %010d ${filler}\\n", a, i }'`;
  return `for c in $(seq 0 ${chunks - 1}); do ${awk}; sleep 0.15; done`;
}

const ask =
  (node: NodeProcess): Fetch =>
  (path, init) =>
    fetch(`http://${node.address}${path}`, { ...init, headers: { ...(init.headers as object), ...node.headers } });

export async function killWhilePrinting(root: string, bytes: number): Promise<KillReport> {
  const lines = Math.ceil(bytes / lineBytes);
  mkdirSync(join(root, "blobs"), { recursive: true });
  const config = (enabled: boolean) => ({
    cluster: { shards: 2, ownerLease: "2s" },
    journal: { kind: "sqlite", directory: join(root, "journal") },
    blobs: { kind: "directory", directory: join(root, "blobs") },
    worker: { enabled, slots: 1 },
  });
  await using reader = await NodeProcess.open(join(root, "reader"), config(false));
  await using worker = await NodeProcess.open(join(root, "worker"), config(true));
  const startedMs = performance.now();
  const { job } = await callEndpoint(ask(reader), submitJob, { body: { command: ["sh", "-c", printing(lines)] } });
  const attempts: string[][] = [];
  let seenBytes = 0;
  const reading = (async () => {
    const feed = await callEndpoint(ask(reader), logsOfJob, { params: { job }, query: { follow: "true" } });
    let next = 0;
    for await (const { data } of feed) {
      if (data.offset === 0) {
        attempts.push([]);
        next = 0;
      }
      if (data.offset !== next) throw new Error(`a piece begins at ${data.offset}, and not at ${next}`);
      next += Buffer.byteLength(data.text);
      attempts.at(-1)?.push(data.text);
      if (attempts.length === 1) seenBytes = next;
    }
  })();
  await until("half of it was read", () => seenBytes >= (lines * lineBytes) / 2, { limitMs: 120_000, everyMs: 20 });
  await worker.kill();
  const seenAtKill = seenBytes;
  await worker.start();
  await reading;
  const [first = "", ...others] = attempts.map((pieces) => pieces.join(""));
  const last = others.at(-1) ?? "";
  if (!expected(1, lines).startsWith(first)) throw new Error("the killed attempt's output is not what it printed");
  if (first.length < seenAtKill) throw new Error(`${seenAtKill} bytes were read, and then ${first.length}`);
  if (last !== expected(others.length + 1, lines)) throw new Error("the last attempt's output is not what it printed");
  const tookMs = performance.now() - startedMs;
  return { seenBytes: seenAtKill, keptBytes: first.length, wholeBytes: last.length, tookMs };
}
