/**
 * Every kind of file in a node's data folder, damaged in every way, while the node is stopped and while it serves: no
 * client gets a wrong byte of a blob or a log, what was lost is healed by an upload, without a person, and a node that
 * serves has every job that was acknowledged. Secrets can be opened, or it is said why they cannot. Only what cannot be
 * made again (the journal, the node's name, a key) may keep the node from starting, and then it says so. With a tier
 * behind the node, no blob is ever lost: what is damaged comes back from there without an upload.
 */
import {
  cpSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { cancelJob, showJob, submitJob } from "#api/jobs.ts";
import { setSecret } from "#api/secrets.ts";
import { digestOf, hashHex } from "#blobs/hashing.ts";
import { callEndpoint, type Fetch } from "#http/client.ts";
import { systemClock } from "#door/system-clock.ts";
import { until } from "#testing/until.ts";
import { startNode, type Running } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { tokenSha256 } from "#edge/identity/bearer.ts";

const token = "damage-token-0123456789-0123456789-0123456789";
const operatorToken = `${token}-of-operators`;
const tokens = [
  { name: "d", tenant: "t", roles: ["member", "action-cache-writer"], sha256: tokenSha256(token) },
  { name: "o", tenant: "*", roles: ["operator"], sha256: tokenSha256(operatorToken) },
];
const headers = { authorization: `Bearer ${token}`, "content-type": "application/octet-stream" };
const operator = { authorization: `Bearer ${operatorToken}`, "content-type": "application/json" };

const mixed = (seed: string, bytes: number): Buffer =>
  Buffer.from(Array.from({ length: bytes / 64 }, (_, i) => hashHex("sha256", Buffer.from(`${seed} ${i}`))).join(""));

/** Small ones are packed into the log, the others are files. */
const things = [64, 640, 6_400, 64_000, 256_000, 1_280_000].map((bytes) => mixed("thing", bytes));

export const ways = {
  flipped(path: string) {
    const bytes = readFileSync(path);
    const at = Math.floor(bytes.length / 2);
    bytes[at] = (bytes[at] ?? 0) ^ 0x10;
    writeFileSync(path, bytes);
  },
  truncated: (path: string) => truncateSync(path, Math.floor(statSync(path).size / 2)),
  removed: (path: string) => rmSync(path),
} as const;

export type Way = keyof typeof ways;
export type When = "stopped" | "serving";
export type Cell = { readonly file: string; readonly way: Way; readonly when: When };
export type Outcome = {
  /** Reads that failed or found nothing before the upload. */
  readonly lost: number;
  /** The same after upload and restart. */
  readonly lostLater: number;
  /** Why the node did not start. */
  readonly refused?: string;
  readonly problems: readonly string[];
};

/** The folder behind the node's own store; undefined for a node that has none. */
type Tier = string | undefined;

const start = (root: string, tier: Tier, enabled = false): Promise<Running> =>
  startNode(
    Config.parse({
      cluster: { shards: 1 },
      edge: { listen: ["127.0.0.1:0"], identity: { tokens } },
      worker: { enabled, slots: 1 },
      node: { stopWithin: "1s" },
      blobs: {
        kind: "disk",
        sizeMax: "64MiB",
        ...(tier !== undefined && { authoritative: { kind: "directory", directory: tier } }),
      },
    }),
    dataFolder(root),
    { log: () => {} },
  );

const base = (node: Running): string => `http://127.0.0.1:${node.edgePorts[0]}`;

const address = (node: Running, thing: Buffer): string => `${base(node)}/v1/build-cache/blobs/${digestOf(thing)}`;

/** A node that serves has the jobs that were acknowledged: it may refuse to start, and must not go on without them. */
async function checkJobs(node: Running, file: string, problems: string[]): Promise<void> {
  const answer = await fetch(`${base(node)}/v1/jobs`, { headers: operator });
  const { items: jobs = [] } = (await answer.json()) as { readonly items?: readonly { readonly job: string }[] };
  if (!answer.ok || jobs.length !== 2) problems.push(`a job is lost: ${answer.status}, ${jobs.length} jobs`);
  for (const { job } of jobs) {
    let log = await logOf(node, job);
    // After a start the history may not have got so far.
    for (let tries = 0; log === "lost" && tries < 20 && !mayLoseLogs(file); tries += 1) {
      await systemClock.sleep(100);
      log = await logOf(node, job);
    }
    if (log === "wrong" || (log === "lost" && !mayLoseLogs(file))) problems.push(`the log of ${job} is ${log}`);
  }
  await checkSecret(node, problems);
}

/** Where they are, or which worker has them. */
const mayLoseLogs = (file: string): boolean => file.startsWith("blobs/") || file === "journal/history.db";

/**
 * One job ended by itself, so its log is a blob; the other was cancelled, and its stream is all there is. A log that
 * breaks off is lost: its reader knows that it is not whole.
 */
async function logOf(node: Running, job: string): Promise<"right" | "wrong" | "lost"> {
  try {
    const answer = await fetch(`${base(node)}/v1/jobs/${job}/tasks/run%2F1/log`, { headers: operator });
    const text = await answer.text();
    if (!answer.ok) return "lost";
    return text === printed ? "right" : "wrong";
  } catch {
    return "lost";
  }
}

/** It is listed, and a rotation opens it. */
async function checkSecret(node: Running, problems: string[]): Promise<void> {
  const listed = await fetch(`${base(node)}/v1/secrets`, { headers: operator });
  if (!(await listed.text()).includes("flour")) problems.push(`a secret is lost: ${listed.status}`);
  const answer = await fetch(`${base(node)}/v1/vault/rotate`, { method: "POST", headers: operator });
  const text = await answer.text();
  const isClear = /bring (it|back)|no such key|sealed by another key|make one with|write a key as/.test(text);
  if (!answer.ok && !isClear) problems.push(`a secret is lost without a word: ${answer.status} ${text.slice(0, 200)}`);
}

async function put(node: Running, thing: Buffer): Promise<boolean> {
  const answer = await fetch(address(node, thing), { method: "PUT", headers, body: Uint8Array.from(thing) });
  await answer.arrayBuffer();
  return answer.ok;
}

/** "lost" if the answer is a refusal or breaks off. */
async function get(node: Running, thing: Buffer): Promise<"right" | "wrong" | "lost"> {
  try {
    const answer = await fetch(address(node, thing), { headers });
    const bytes = Buffer.from(await answer.arrayBuffer());
    if (!answer.ok) return "lost";
    return bytes.equals(thing) ? "right" : "wrong";
  } catch {
    return "lost";
  }
}

/** A data folder with something in every kind of file, after a stop and, for logs of databases, after a kill. */
export type Template = Disposable & {
  readonly files: readonly string[];
  readonly tier: Tier;
  rootOf(file: string): string;
};

export async function makeTemplate({ hasTier = false } = {}): Promise<Template> {
  const root = mkdtempSync(join(tmpdir(), "millrace-damage-"));
  const behind = mkdtempSync(join(tmpdir(), "millrace-tier-"));
  const tier = hasTier ? behind : undefined;
  const node = await start(root, tier, true);
  for (const thing of things) if (!(await put(node, thing))) throw new Error("the template could not be written");
  const ask = asking(node);
  await callEndpoint(ask, setSecret, { params: { name: "flour" }, body: { value: "white" } });
  const print = `seq 1000 | sed s/^/grain/`;
  const run = async (line: string): Promise<string> =>
    (await callEndpoint(ask, submitJob, { body: { command: ["sh", "-c", line] } })).job;
  const phaseOf = async (job: string): Promise<string> => (await callEndpoint(ask, showJob, { params: { job } })).phase;
  const [whole, cut] = [await run(print), await run(`${print}; sleep 1000`)];
  await until("the first job has ended", async () => (await phaseOf(whole)) === "SUCCEEDED", { limitMs: 60_000 });
  const isPrinted = async (): Promise<boolean> => (await logOf(node, cut)) === "right";
  await until("the other one has printed", isPrinted, { limitMs: 60_000, everyMs: 100 });
  await callEndpoint(ask, cancelJob, { params: { job: cut }, body: { hard: true } });
  await until("it was cancelled", async () => (await phaseOf(cut)) === "CANCELLED", { limitMs: 60_000 });
  const killed = mkdtempSync(join(tmpdir(), "millrace-killed-"));
  const isFileOrFolder = (path: string): boolean => lstatSync(path).isFile() || lstatSync(path).isDirectory();
  cpSync(root, killed, { recursive: true, filter: isFileOrFolder });
  rmSync(join(killed, "up.pid"), { force: true });
  await node.stop();
  const files = filesIn(root);
  const more = filesIn(killed).filter((file) => /-(wal|shm)$/.test(file));
  return {
    files: [...files, ...more],
    tier,
    rootOf: (file) => (more.includes(file) ? killed : root),
    [Symbol.dispose]() {
      for (const folder of [root, killed, behind]) rmSync(folder, { recursive: true, force: true });
    },
  };
}

const printed = Array.from({ length: 1_000 }, (_, i) => `grain${i + 1}\n`).join("");

const asking =
  (node: Running): Fetch =>
  (path, init) =>
    fetch(`${base(node)}${path}`, { ...init, headers: { ...(init.headers as object), ...operator } });

const filesIn = (root: string): readonly string[] =>
  readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile() && statSync(join(one.parentPath, one.name)).size > 0)
    .map((one) => relative(root, join(one.parentPath, one.name)))
    .toSorted();

export async function tryCell(template: Template, { file, way, when }: Cell): Promise<Outcome> {
  const root = mkdtempSync(join(tmpdir(), "millrace-damaged-"));
  cpSync(template.rootOf(file), root, { recursive: true });
  const { tier } = template;
  let node: Running | undefined;
  try {
    if (when === "stopped") ways[way](join(root, file));
    node = await start(root, tier);
    if (when === "serving") ways[way](join(root, file));
    const problems: string[] = [];
    const lost = await readAll(node, problems);
    if (tier !== undefined && lost > 0) problems.push(`${lost} blobs did not come back from the tier`);
    if (when === "stopped" || !isJournal(file)) await checkJobs(node, file, problems);
    let lostLater = 0;
    await healAll(node, problems);
    if (when === "stopped" || !isJournal(file)) {
      await node.stop();
      node = undefined;
      node = await start(root, tier);
      lostLater = await readAll(node, problems);
      await checkJobs(node, file, problems);
      if (lostLater > 0) problems.push(`${lostLater} blobs that were sent again are lost after a restart`);
      await healAll(node, problems);
    }
    return { lost, lostLater, problems };
  } catch (error) {
    const refused = String(error);
    return { lost: 0, lostLater: 0, refused, problems: isClear(file, refused) ? [] : [`does not start: ${refused}`] };
  } finally {
    await node?.stop().catch(() => {});
    rmSync(root, { recursive: true, force: true });
  }
}

async function readAll(node: Running, problems: string[]): Promise<number> {
  let lost = 0;
  for (const thing of things) {
    const found = await get(node, thing);
    if (found === "wrong") problems.push(`wrong bytes of a blob of ${thing.length}`);
    if (found === "lost") lost += 1;
  }
  return lost;
}

async function healAll(node: Running, problems: string[]): Promise<void> {
  for (const thing of things) {
    if (!(await put(node, thing))) problems.push(`an upload of ${thing.length} bytes was refused`);
    if ((await get(node, thing)) !== "right") problems.push(`a blob of ${thing.length} is not healed by an upload`);
  }
}

const isJournal = (file: string): boolean => file.startsWith("journal/");

/** The truth itself, or who the node is: it must not go on as if nothing had been, and says what is wrong. */
const isClear = (file: string, refused: string): boolean =>
  (isJournal(file) || ["node-name", "deploy/signing-key.pem"].includes(file)) &&
  /corrupt|malformed|not a database|not a valid name/i.test(refused);
