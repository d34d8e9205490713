/** The contestants of `bench exec`: a single node, or three on one PostgreSQL with a shared folder behind them. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Journal } from "#journal/journal.ts";
import { postgresJournal } from "#journal/postgres/postgres.ts";
import { sqliteJournal } from "#journal/sqlite/sqlite.ts";
import { clearAway } from "#testing/clear-away.ts";
import { freePort } from "#testing/free-port.ts";
import type { PostgresServer } from "#testing/postgres.ts";
import { isOpen } from "#bench/edge/contestants.ts";
import type { ExecAsked, ExecDid } from "./load.ts";
import { LoadProcess } from "#bench/load-process.ts";
import { processTimes } from "#bench/measure.ts";

export type SandboxKind = "bubblewrap" | "plain";

/** CPU so far, in microseconds. */
export type Used = {
  /** Of the nodes, their launchers and the shells that wait in lanes. */
  readonly ownUs: number;
  /** Of what they ran: sandboxes and commands. */
  readonly ranUs: number;
};

const root = join(import.meta.dirname, "..", "..");

export class ExecNodes {
  readonly ports: readonly number[];
  readonly #children: readonly ChildProcess[];
  readonly #folder: string;
  readonly #journal: () => Promise<Journal> | Journal;

  private constructor(
    ports: readonly number[],
    children: readonly ChildProcess[],
    folder: string,
    journal: () => Promise<Journal> | Journal,
  ) {
    this.ports = ports;
    this.#children = children;
    this.#folder = folder;
    this.#journal = journal;
    process.once("exit", this.#kill); // whatever ends the benchmark
  }

  static async one(sandbox: SandboxKind): Promise<ExecNodes> {
    const folder = openFolder();
    const journal = join(folder, "journal");
    const port = await freePort();
    const child = startNode(join(folder, "node-0"), port, sandbox, [
      `journal: { kind: sqlite, directory: ${journal} }`,
      "blobs: { kind: disk, sizeMax: 20GiB }",
    ]);
    const nodes = new ExecNodes([port], [child], folder, () => sqliteJournal({ directory: journal }));
    await nodes.#listening();
    return nodes;
  }

  static async three(sandbox: SandboxKind, server: PostgresServer): Promise<ExecNodes> {
    const folder = openFolder();
    const url = await server.freshDatabase();
    const shared = join(folder, "shared");
    mkdirSync(shared);
    const ports = [await freePort(), await freePort(), await freePort()];
    const names = `names: { kind: postgres, url: "${url}" }`;
    const children = ports.map((port, no) =>
      startNode(join(folder, `node-${no}`), port, sandbox, [
        "cluster: { shards: 12 }",
        `journal: { kind: postgres, url: "${url}" }`,
        `blobs: { kind: disk, sizeMax: 20GiB, authoritative: { kind: directory, directory: ${shared}, ${names} } }`,
      ]),
    );
    const nodes = new ExecNodes(ports, children, folder, () => postgresJournal({ url }));
    await nodes.#listening();
    return nodes;
  }

  get used(): Used {
    let [ownUs, ranUs] = [0, 0];
    const below = childrenByParent();
    for (const { pid = 0 } of this.#children) {
      ownUs += processTimes(pid)?.ownUs ?? Number.NaN;
      for (const launcher of below.get(pid) ?? []) {
        const times = processTimes(launcher);
        ownUs += times?.ownUs ?? 0;
        ranUs += times?.endedUs ?? 0;
        for (const shell of below.get(launcher) ?? []) {
          ownUs += processTimes(shell)?.ownUs ?? 0;
          ranUs += processTimes(shell)?.endedUs ?? 0;
        }
      }
    }
    return { ownUs, ranUs };
  }

  /** Stops them and provides their journal, which has the times of all events. */
  async stop<T>(read: (journal: Journal) => Promise<T>): Promise<T> {
    const alive = this.#children.filter((child) => child.exitCode === null);
    const ended = alive.map((child) => once(child, "exit"));
    for (const child of this.#children) child.kill();
    await Promise.all(ended);
    try {
      const journal = await this.#journal();
      try {
        return await read(journal);
      } finally {
        await journal.close();
      }
    } finally {
      process.off("exit", this.#kill);
      clearAway(this.#folder);
    }
  }

  /** The last lines that they logged, for when something went wrong. */
  get complaints(): string {
    const paths = this.#children.map((_, no) => join(this.#folder, `node-${no}`, "log"));
    return paths.map((path) => (existsSync(path) ? readFileSync(path, "utf8").slice(-2_000) : "")).join("");
  }

  /** Killed at once: their unfinished work and their folder are not needed any more. */
  readonly #kill = (): void => {
    for (const child of this.#children) child.kill("SIGKILL");
    clearAway(this.#folder);
  };

  async #listening(): Promise<void> {
    for (const [no, port] of this.ports.entries())
      for (let tries = 0; !(await isOpen(port)); tries += 1) {
        if (this.#children[no]?.exitCode !== null || tries > 800) throw new Error(`node ${no} does not listen`);
        await new Promise((resolve) => setTimeout(resolve, 25));
      }
  }
}

/** The users of lanes must be able to enter it. */
function openFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "millrace-exec-"));
  chmodSync(folder, 0o711);
  return folder;
}

function startNode(folder: string, port: number, sandbox: SandboxKind, settings: readonly string[]): ChildProcess {
  mkdirSync(folder, { mode: 0o711 });
  const config = join(folder, "millrace.yaml");
  const actions = join(folder, "actions");
  const lines = [`edge: { listen: ["127.0.0.1:${port}"] }`, `worker: { sandbox: ${sandbox}, actionsIn: ${actions} }`];
  writeFileSync(config, [...lines, ...settings].join("\n"));
  // The flags of bin/millrace.js, whose own process would only wait for this one.
  const flags = ["--max-semi-space-size=64", ...profileFlags(), join(root, "src/cli/main.ts")];
  const args = [...flags, "up", "--data", join(folder, "data"), "--config", config];
  const log = openSync(join(folder, "log"), "a");
  try {
    return spawn(process.execPath, args, { stdio: ["ignore", "ignore", log] });
  } finally {
    closeSync(log);
  }
}

/** To see what a node is busy with: $BENCH_PROFILE names a folder for CPU profiles. */
function profileFlags(): readonly string[] {
  const folder = process.env["BENCH_PROFILE"];
  return folder === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${folder}`];
}

function childrenByParent(): ReadonlyMap<number, readonly number[]> {
  const found = new Map<number, number[]>();
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    let stat = "";
    try {
      stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    } catch {
      continue; // it has ended meanwhile
    }
    const parent = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
    found.set(parent, [...(found.get(parent) ?? []), Number(pid)]);
  }
  return found;
}

/** The client of remote execution. */
export class ExecLoad extends LoadProcess<ExecAsked, ExecDid> {
  constructor() {
    super(join(import.meta.dirname, "load.ts"), ["--max-semi-space-size=64"]);
  }
}
