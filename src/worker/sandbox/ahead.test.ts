import { equal, match, notEqual, ok } from "node:assert/strict";
import { appendFileSync, existsSync, readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";
import { canMakeNetworks } from "#worker/process/sockets/network.ts";
import { isAlive, isOver } from "#worker/process/launcher/proc.ts";
import { rigClock, rigHome, text } from "#worker/process/testing/rig.ts";
import { attemptsIn, type AttemptFolder } from "./folders/attempt-folder.ts";
import type { Command } from "./command.ts";
import { commandOf } from "./testing/rig.ts";
import { Sandbox } from "./sandbox.ts";

type Ended = { readonly out: string; readonly folder: AttemptFolder; readonly exitCode: number };

/** One lane, so that all commands run in the same one. */
class Rig implements AsyncDisposable {
  readonly sandbox: Sandbox;
  readonly home: string;

  private constructor(sandbox: Sandbox, home: string) {
    this.sandbox = sandbox;
    this.home = home;
  }

  static async open(home = rigHome()): Promise<Rig> {
    const options = { home, socket: join(home, "l.sock"), lanes: 1, clock: rigClock, log: () => {} };
    return new Rig(await Sandbox.open({ ...options, isolation: { want: "bubblewrap" } }), home);
  }

  async run(argv: readonly string[], more: Partial<Command> = {}): Promise<Ended> {
    await using attempt = await this.sandbox.attempt();
    const { exitCode } = await attempt.run(commandOf(argv, more));
    const { folder } = attempt;
    return { out: `${text(folder.stdout)}${text(folder.stderr)}`, folder, exitCode };
  }

  sh(script: string, more: Partial<Command> = {}): Promise<Ended> {
    return this.run(["/bin/sh", "-c", script], more);
  }

  /** The pid of the shell that waits in a sandbox, once it does. */
  async waiting(): Promise<number> {
    let found: number | undefined;
    await until("a sandbox waits", () => (found = this.#waiting()) !== undefined);
    return found ?? 0;
  }

  #waiting(): number | undefined {
    const attempts = attemptsIn(this.home);
    const known = new Set(readdirSync(attempts).map((name) => join(attempts, name, "stdout")));
    const isIn = (pid: string): boolean =>
      text(`/proc/${pid}/cmdline`).startsWith("/bin/sh\0-c\0while read") && known.has(linkOr(`/proc/${pid}/fd/1`));
    return readdirSync("/proc").filter(isIn).map(Number)[0];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.sandbox.close({ quit: true });
    clearAway(this.home);
  }
}

function linkOr(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

const parentOf = (pid: number): number => Number(/^PPid:\s*(\d+)/m.exec(text(`/proc/${pid}/status`))?.[1]);

const skip = !canMakeNetworks() && "needs root, bubblewrap and networks";
const where = "readlink /proc/self/ns/mnt";

describe("a sandbox that is made ahead", { skip, timeout: 120_000 }, () => {
  test("is used by the next command, and by no other", async () => {
    await using rig = await Rig.open();
    await rig.sh("touch /tmp/mine");
    const waits = linkOr(`/proc/${await rig.waiting()}/ns/mnt`);
    // Namespace numbers are reused, so content tells them apart.
    equal((await rig.sh(`${where}; ls /tmp; touch /tmp/mine`)).out, `${waits}\nbuild\n`);
    await rig.waiting();
    equal((await rig.sh("ls /tmp")).out, "build\n");
  });

  test("passes on no descriptor and no variable of ours, and has the right working directory", async () => {
    await using rig = await Rig.open();
    await rig.sh(":");
    await rig.waiting();
    match((await rig.run(["/bin/ls", "/proc/self/fd"])).out, /^0\n1\n2\n3\n$/);
    equal((await rig.run(["/usr/bin/env"], { env: { A: "it's" } })).out, "A=it's\n");
    equal((await rig.run(["/bin/pwd"])).out, "/tmp/build\n");
  });

  test("REAPI-83: reports a missing program, and takes its time and limits from the command", async () => {
    await using rig = await Rig.open();
    await rig.sh(":", { limits: { pids: 30 } });
    await rig.waiting();
    equal((await rig.run(["no-such-program"])).exitCode, 127);
    await rig.waiting();
    equal((await rig.run(["/etc/passwd"])).exitCode, 126);
    equal((await rig.sh("sleep 1000", { timeoutMs: 100 })).exitCode, 137);
    await rig.waiting();
    const { out } = await rig.sh("for i in 1 2 3 4 5 6 7 8; do sleep 0.1 & done; wait", { limits: { pids: 6 } });
    match(out, /fork/i);
  });

  test("that cannot be made within the previous run's limits is made within the next run's", async () => {
    await using rig = await Rig.open();
    await rig.sh(":", { limits: { pids: 3 } });
    equal((await rig.sh("/bin/echo here | cat", { limits: { pids: 20 } })).out, "here\n");
  });

  test("that died while it waited is made again", async () => {
    await using rig = await Rig.open();
    await rig.sh(":");
    const waiting = await rig.waiting();
    const shell = parentOf(parentOf(parentOf(waiting)));
    process.kill(waiting, "SIGKILL");
    // It takes the next order only when it has reported how the last one ended.
    await until("its shell waits again", () => text(`/proc/${shell}/wchan`).includes("stream_read"));
    equal((await rig.sh("echo here")).out, "here\n");
  });

  test("is dropped with its folder if that was changed", async () => {
    await using rig = await Rig.open();
    await rig.sh(":");
    const waiting = await rig.waiting();
    const printed = linkOr(`/proc/${waiting}/fd/1`);
    appendFileSync(printed, "someone else's text");
    const { out, folder } = await rig.sh("echo here");
    equal(out, "here\n");
    notEqual(folder.stdout, printed);
    ok(isOver(waiting));
    await rig.sandbox.folders.settled();
    ok(!existsSync(printed));
  });

  test("is removed for a command that wants another, and when the sandbox is closed", async () => {
    await using rig = await Rig.open();
    await rig.sh(":");
    const first = await rig.waiting();
    equal((await rig.sh("readlink /proc/self/ns/net", { network: true })).out, `${linkOr("/proc/self/ns/net")}\n`);
    ok(isOver(first));
    await rig.sh(":");
    const second = await rig.waiting();
    await rig.sandbox.close({ quit: true });
    ok(isOver(second));
    equal(readdirSync(attemptsIn(rig.home)).length, 0);
  });

  test("is removed even while it is being made", async () => {
    await using rig = await Rig.open();
    for (let round = 0; round < 10; round += 1) {
      await rig.sh(":");
      equal((await rig.sh("echo here", { network: true })).out, "here\n");
    }
  });

  test("is removed by the node's next process, which does not know its folder", async () => {
    await using rig = await Rig.open();
    await rig.sh(":");
    const waiting = await rig.waiting();
    await rig.sandbox.close({ quit: false });
    await using next = await Rig.open(rig.home);
    await until("it is dead", () => !isAlive(waiting));
    equal((await next.sh("echo here")).out, "here\n");
  });
});
