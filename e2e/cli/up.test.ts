// The real program as a user starts it: recorded work outlives kill -9.
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";

const main = join(import.meta.dirname, "..", "..", "src", "cli", "main.ts");
const patience = { limitMs: 60_000, everyMs: 20 };

class Program {
  readonly child: ChildProcess;
  text = "";
  readonly ended: Promise<number | null>;

  constructor(data: string, ...args: readonly string[]) {
    const env = {
      ...process.env,
      MILLRACE_DATA: data,
      MILLRACE_SERVER: "",
      XDG_CACHE_HOME: join(tmpdir(), "millrace-test-cache"),
    };
    this.child = spawn(process.execPath, [main, ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.child.stdout, this.child.stderr])
      stream?.on("data", (chunk: Buffer) => (this.text += chunk.toString()));
    this.ended = new Promise((resolve) => this.child.once("close", resolve));
  }

  async says(words: string): Promise<void> {
    const hasEnded = (): boolean => this.child.exitCode !== null || this.child.signalCode !== null;
    await until(`it says ${JSON.stringify(words)}`, () => this.text.includes(words) || hasEnded(), patience);
    ok(this.text.includes(words), `it ended without ${JSON.stringify(words)}:\n${this.text}`);
  }
}

const job = `
name: naps
stages:
  - { name: naps, sleep: 300ms, count: 20 }
  - { name: last, needs: [naps], run: "echo the end" }
`;

test(
  "work that was submitted is finished, although the node is killed with -9 in the middle",
  { timeout: 170_000 },
  async () => {
    const folder = await mkdtemp(join(tmpdir(), "millrace-up-"));
    const data = join(folder, "data");
    const programs: Program[] = [];
    const start = (...args: readonly string[]): Program => {
      const program = new Program(data, ...args);
      programs.push(program);
      return program;
    };
    try {
      const none = start("job", "list");
      equal(await none.ended, 1);
      match(none.text, /no node is running there\)\nnext: start one with: millrace up/);

      const first = start("up");
      await first.says("Ctrl-C stops it");
      match(first.text, /journal {3}sqlite, durable/);
      match(first.text, new RegExp(`npx millrace job list`));
      const edge = /edge {6}(127\.0\.0\.1:\d+) \(gRPC/.exec(first.text)?.[1];
      ok(edge !== undefined, first.text);
      equal((await fetch(`http://${edge}/readyz`)).status, 200);

      const second = start("up");
      equal(await second.ended, 1);
      match(second.text, /a node is already running there/);

      const file = join(folder, "job.yaml");
      await writeFile(file, job);
      const follow = start("job", "submit", "--follow", "--key", "naps", file);
      await follow.says("naps/2: done");
      first.child.kill("SIGKILL");
      await first.ended;

      const reborn = start("up");
      await reborn.says("Ctrl-C stops it");
      equal(await follow.ended, 0, follow.text);
      match(follow.text, /last\/1 \| the end\n/);
      match(follow.text, /SUCCEEDED/);

      const again = start("job", "submit", "--key", "naps", file);
      equal(await again.ended, 0);
      match(again.text, /was submitted before under this key/);
      const list = start("job", "list", "--json");
      equal(await list.ended, 0);
      equal(list.text.trim().split("\n").length, 1, list.text);
      match(list.text, /"phase":"SUCCEEDED"/);

      reborn.child.kill("SIGTERM");
      equal(await reborn.ended, 0, reborn.text);
    } finally {
      for (const { child } of programs) child.kill("SIGKILL");
      await Promise.all(programs.map(({ ended }) => ended));
      clearAway(folder);
    }
  },
);

test("a node that cannot listen where it is told ends, with what to do about it", { timeout: 60_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-up-"));
  const other = createServer();
  await new Promise<void>((there) => other.listen(0, "127.0.0.1", there));
  const { port } = other.address() as AddressInfo;
  const program = new Program(join(folder, "data"), "up", "--set", `edge.listen=127.0.0.1:${port}`);
  try {
    equal(await program.ended, 1);
    match(program.text, /another program listens there\)\nnext: choose another host:port in edge\.listen/);
  } finally {
    program.child.kill("SIGKILL");
    other.close();
    clearAway(folder);
  }
});

test("a node prints a link for a browser, which works once, and keeps its token", { timeout: 120_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-up-"));
  const data = join(folder, "data");
  const light = ["--set", "journal.kind=memory", "--set", "blobs.kind=memory", "--set", "worker.enabled=false"];
  const programs: Program[] = [];
  const started = async (...args: readonly string[]): Promise<Program> => {
    const program = new Program(data, "up", "--set", "edge.listen=127.0.0.1:0", ...light, ...args);
    programs.push(program);
    await program.says("\n");
    return program;
  };
  try {
    const first = await started("--json");
    const { login } = JSON.parse(first.text.split("\n")[0] ?? "") as { readonly login: { readonly url: string } };
    const codes = [await fetch(login.url), await fetch(login.url)].map(({ status }) => status);
    deepEqual(codes, [200, 401]);
    const token = await readFile(join(data, "operator.token"), "utf8");
    first.child.kill("SIGKILL");
    await first.ended;
    const second = await started();
    await second.says("Ctrl-C");
    match(second.text, /^ {2}browser {3}http:\/\/127\.0\.0\.1:\d+\/login\?code=[\w-]{43} \(once, within 5/m);
    equal(await readFile(join(data, "operator.token"), "utf8"), token);
    const printed = programs.map(({ text }) => text).join("");
    ok(!printed.includes(token.trim()), "the token itself is never printed");
    second.child.kill("SIGTERM");
    equal(await second.ended, 0);
  } finally {
    for (const { child } of programs) child.kill("SIGKILL");
    await Promise.all(programs.map(({ ended }) => ended));
    clearAway(folder);
  }
});

const starters = [
  { name: "its starter with TERM", signal: "SIGTERM", below: [] },
  { name: "its starter with -9", signal: "SIGKILL", below: [] },
  // As npm starts it: below a shell of its own.
  { name: "npm with -9", signal: "SIGKILL", below: ["sh", "-c", '"$@"; true', "sh"] },
] as const;

const isLinux = process.platform === "linux";

for (const { name, signal, below } of starters)
  test(`killing ${name} ends the node`, { skip: !isLinux && "needs linux: /proc", timeout: 60_000 }, async () => {
    const folder = await mkdtemp(join(tmpdir(), "millrace-up-"));
    const data = join(folder, "data");
    const light = ["--set", "journal.kind=memory", "--set", "blobs.kind=memory", "--set", "worker.enabled=false"];
    const millrace = join(import.meta.dirname, "..", "..", "bin", "millrace.js");
    const line = [...below, process.execPath, millrace, "up", "--set", "edge.listen=127.0.0.1:0", ...light];
    // A process between the test and the shell, in npm's place.
    const npm =
      'const c = require("node:child_process").spawn(process.argv[1], process.argv.slice(2), { stdio: "inherit" });' +
      'process.on("SIGTERM", () => c.kill());';
    const [program = "", ...args] = below.length > 0 ? [process.execPath, "-e", npm, ...line] : line;
    const env = { ...process.env, MILLRACE_DATA: data, npm_lifecycle_event: "start" };
    const starter = spawn(program, args, { env, stdio: ["ignore", "pipe", "inherit"] });
    let pid: number | undefined;
    try {
      await until("it is up", () => existsSync(join(data, "edge-address")), patience);
      pid = Number((await readFile(join(data, "up.pid"), "utf8")).split(" ")[0]);
      ok(isAlive(pid) && pid !== starter.pid);
      starter.kill(signal);
      await until("the node has ended", () => !isAlive(pid ?? 0), patience);
      equal(existsSync(join(data, "up.pid")), false, "it ended in order, and left its folder");
    } finally {
      if (pid !== undefined && isAlive(pid)) process.kill(pid, "SIGKILL");
      starter.kill("SIGKILL");
      clearAway(folder);
    }
  });

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
