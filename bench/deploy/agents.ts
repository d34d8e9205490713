/**
 * Many agents in one process, as far as a node can see: each holds a stream of goals on a connection of its own. Those
 * that follow report that they are healthy with whatever the goal says, without fetching a byte. Started by crowd.ts,
 * with its settings as JSON in the first argument; says what it sees on stdout, a JSON document a line.
 */
import { Agent as HttpAgent, request as requestHttp } from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import { readFileSync } from "node:fs";
import { isNamed } from "#doors/deploy/agent/machine.ts";
import { machineKeyHeader } from "#doors/deploy/agent/machine-key.ts";
import { Goal } from "#doors/deploy/goal/goal.ts";
import type { Signed } from "#doors/deploy/signing/signing.ts";
import { readEvents } from "#http/live/sse.ts";
import type { CrowdSettings } from "./crowd.ts";

const settings = JSON.parse(process.argv[2] ?? "{}") as CrowdSettings;
const { url, token, caFile, count, attachAtOnce } = settings;
const base = new URL(url);
const isTls = base.protocol === "https:";
const request = isTls ? requestHttps : requestHttp;
const ca = caFile === undefined ? {} : { ca: readFileSync(caFile) };
const reports = isTls
  ? new HttpsAgent({ ...ca, keepAlive: true, maxSockets: 16 })
  : new HttpAgent({ keepAlive: true, maxSockets: 16 });

let attached = 0;
let failed = 0;

function headersOf(machine: string): Record<string, string> {
  return { authorization: `Bearer ${token}`, [machineKeyHeader]: `key of ${machine}` };
}

/** Resolves when the node has answered; the stream is read for ever. */
async function attach(at: number): Promise<void> {
  const machine = `m${at}`;
  const label = `svc=s${at % settings.services}`;
  const query = `region=eu&labels=${encodeURIComponent(label)}`;
  const answered = Promise.withResolvers<void>();
  const options = { agent: false as const, headers: headersOf(machine), ...ca };
  const sent = request(new URL(`/v1/deploy/machines/${machine}/goals?${query}&trust=0`, base), options, (incoming) => {
    answered.resolve();
    if (incoming.statusCode !== 200) {
      failed += 1;
      incoming.resume();
      return;
    }
    attached += 1;
    void follow(machine, query, incoming).catch((error: unknown) => {
      failed += 1;
      console.error(`${machine}: ${String(error)}`);
    });
  });
  sent.on("error", () => {
    failed += 1;
    answered.resolve();
  });
  sent.end();
  await answered.promise;
}

async function follow(machine: string, query: string, stream: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const { data } of readEvents(stream)) {
    const signed = JSON.parse(data) as Signed;
    if (signed.purpose !== "goal") continue;
    const goal = Goal.parse(JSON.parse(signed.body));
    say({ kind: "goal", service: goal.service, version: goal.version, halted: goal.halted, atMs: Date.now() });
    const isIn = isNamed(machine, goal) && goal.manifest !== null;
    if (settings.follows && isIn && !goal.halted) await report(machine, query, goal);
  }
}

async function report(machine: string, query: string, goal: Goal): Promise<void> {
  const { service, version: goalVersion, manifest: running } = goal;
  const body = JSON.stringify({ service, goalVersion, state: "healthy", running, why: "" });
  const headers = { ...headersOf(machine), "content-type": "application/json" };
  const url = new URL(`/v1/deploy/machines/${machine}/reports?${query}`, base);
  await new Promise<void>((resolve) => {
    const sent = request(url, { agent: reports, method: "POST", headers }, (incoming) => {
      if (incoming.statusCode !== 200)
        throw new Error(`${machine}: its report was answered with ${incoming.statusCode}`);
      incoming.resume();
      incoming.on("end", resolve);
    });
    sent.on("error", () => {
      failed += 1;
      resolve();
    });
    sent.end(body);
  });
}

const say = (word: object): void => void process.stdout.write(`${JSON.stringify(word)}\n`);

const queue = Array.from({ length: count }, (_, at) => at).values();
await Promise.all(
  Array.from({ length: attachAtOnce }, async () => {
    for (const at of queue) await attach(at);
  }),
);
say({ kind: "attached", attached, failed });
setInterval(() => say({ kind: "state", attached, failed }), 5_000);
