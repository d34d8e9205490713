import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import { isFault } from "#base/fault.ts";
import { until } from "#testing/until.ts";
import { freeBytes } from "#worker/process/launcher/disk-guard.ts";
import { isAlive, isOver } from "#worker/process/launcher/proc.ts";
import { rigClock, rigHome, text } from "#worker/process/testing/rig.ts";
import { boxFailure } from "./box.ts";
import type { Command, Ran } from "./command.ts";
import { commandOf } from "./testing/rig.ts";
import { Sandbox, type SandboxOptions } from "./sandbox.ts";
import { bwrapMissing } from "#testing/bubblewrap.ts";

const isLinux = process.platform === "linux";
const isRoot = process.getuid?.() === 0;

class Rig implements AsyncDisposable {
  readonly sandbox: Sandbox;
  readonly home: string;

  private constructor(sandbox: Sandbox, home: string) {
    this.sandbox = sandbox;
    this.home = home;
  }

  static async open(more: Partial<SandboxOptions> = {}): Promise<Rig> {
    const home = more.home ?? rigHome();
    const options = { home, socket: join(home, "l.sock"), lanes: 2, clock: rigClock, log: () => {} };
    return new Rig(await Sandbox.open({ ...options, ...more }), home);
  }

  async sh(script: string, more: Partial<Command> = {}): Promise<Ran & { readonly out: string; readonly err: string }> {
    await using attempt = await this.sandbox.attempt();
    const ran = await attempt.run(commandOf(["/bin/sh", "-c", script], more));
    return { ...ran, out: text(attempt.folder.stdout), err: text(attempt.folder.stderr) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.sandbox.close({ quit: true });
    rmSync(this.home, { recursive: true, force: true });
  }
}

const modes = [
  { name: "in bubblewrap", skip: bwrapMissing(), isolation: { want: "bubblewrap" } },
  { name: "plainly, as another user", skip: !isRoot && "needs root: other users", isolation: { want: "plain" } },
  { name: "plainly, as ourselves", skip: !isLinux && "needs linux: /proc", isolation: { want: "plain", users: false } },
] as const;

for (const { name, skip, isolation } of modes)
  describe(`a command ${name}`, { skip, timeout: 120_000 }, () => {
    const kind = isolation.want;
    const isBox = kind === "bubblewrap";

    test("writes below its root, sees only its own variables, and its result names its sandbox", async () => {
      await using rig = await Rig.open({ isolation });
      await using attempt = await rig.sandbox.attempt();
      const { root } = attempt.folder;
      const ran = await attempt.run(commandOf(["/bin/sh", "-c", "echo made > out; umask; /usr/bin/env | grep -v PWD"]));
      deepEqual([ran.sandbox, ran.why, ran.exitCode], [kind, "exited", 0]);
      equal(text(join(root, "out")), "made\n");
      equal(text(attempt.folder.stdout), "0022\nPATH=/usr/bin:/bin\n");
      const { about } = rig.sandbox;
      equal(about.kind, kind);
      // A limit that an action asks for and that is not enforced is reported.
      equal(/a limit of CPU/.test(about.missing.join()), !about.controllers.includes("cpu"));
    });

    test("REAPI-83: that does not exist ends with 127, that cannot be executed with 126", async () => {
      await using rig = await Rig.open({ isolation });
      const exitCode = async (argv: readonly string[]): Promise<number> => {
        await using attempt = await rig.sandbox.attempt();
        return (await attempt.run(commandOf(argv))).exitCode;
      };
      deepEqual([await exitCode(["no-such-program"]), await exitCode(["./missing"])], [127, 127]);
      equal(await exitCode(["/etc/passwd"]), 126);
      equal(await exitCode(["sh", "-c", "exit 1"]), 1);
      await rejects(exitCode([]), (error) => isFault(error, "invalid"));
    });

    test("REAPI-84: that is killed names the signal, and so does one that exits with 128 or more", async () => {
      await using rig = await Rig.open({ isolation });
      const { exitCode, message } = await rig.sh("kill -SEGV $$");
      equal(exitCode, 139);
      match(message ?? "", /SIGSEGV/);
    });

    test("REAPI-86: leaves nothing alive when it ends, is cancelled, or takes too long", async () => {
      await using rig = await Rig.open({ isolation });
      const marker = `3${process.pid}`;
      const running = (): boolean => readdirSync("/proc").some((pid) => text(`/proc/${pid}/cmdline`).includes(marker));
      await rig.sh(`sleep ${marker} & (setsid sleep ${marker} &)`);
      ok(!running(), "after its end");
      equal((await rig.sh(`setsid sleep ${marker} & sleep ${marker}`, { timeoutMs: 200 })).why, "timed-out");
      ok(!running(), "after its time");
      await using attempt = await rig.sandbox.attempt();
      const abort = new AbortController();
      const ran = attempt.run(commandOf(["/bin/sh", "-c", `touch up; sleep ${marker}`]), abort.signal);
      await until("it runs", () => existsSync(join(attempt.folder.root, "up")));
      abort.abort();
      equal((await ran).why, "cancelled");
      ok(!running(), "after it was cancelled");
    });

    test("that fills memory is contained and recognised", async (t) => {
      await using rig = await Rig.open({ isolation });
      if (!rig.sandbox.about.controllers.includes("memory")) return t.skip("needs cgroups: no memory controller");
      const hog = "head -c 300000000 /dev/zero | tail -c 200000000 > /dev/null";
      const { outOfMemory, message } = await rig.sh(hog, { limits: { memoryBytes: 40_000_000 } });
      ok(outOfMemory);
      match(message ?? "", /memory/);
    });

    test("that forks without end is contained", async (t) => {
      await using rig = await Rig.open({ isolation });
      if (rig.sandbox.about.groups === "none") return t.skip("needs cgroups: they cannot be written here");
      await using attempt = await rig.sandbox.attempt();
      const bomb = commandOf(["/bin/bash", "-c", "f() { f | f & }; f; sleep 100"], {
        limits: { pids: 30 },
        timeoutMs: 500,
      });
      equal((await attempt.run(bomb)).why, "timed-out");
      equal((await rig.sh("echo on")).out, "on\n");
    });

    test("that fills the disk is ended before it is full; its neighbour continues", async () => {
      // More than is free, so that any write is too much.
      const freeBytesMin = freeBytes("/tmp") + 10_000_000_000;
      await using rig = await Rig.open({ isolation, freeBytesMin });
      const small = rig.sh("echo small > f; sleep 100", { timeoutMs: 3_000 });
      const filler = await rig.sh("head -c 200000000 /dev/zero > big; sleep 100");
      equal(filler.why, "disk-full");
      match(filler.message ?? "", /disk/);
      equal((await small).why, "timed-out", "it was not ended for the disk");
    });

    test("has a folder that no other user can enter, and that is deleted afterwards", async () => {
      await using rig = await Rig.open({ isolation });
      let path: string;
      {
        await using attempt = await rig.sandbox.attempt();
        path = attempt.folder.path;
        equal(statSync(path).mode & 0o007, 0);
        match(path, /\/[0-9a-f]{32}$/);
        await attempt.run(
          commandOf(["/bin/sh", "-c", "mkdir -p d/e; touch d/e/f; chmod 000 d/e d; : > \"$(printf '\\377')\""]),
        );
      }
      await until("the folder is gone", () => !existsSync(path));
    });

    if (isBox || !("users" in isolation))
      test("cannot read other attempts' files", async () => {
        await using rig = await Rig.open({ isolation });
        await using other = await rig.sandbox.attempt();
        writeFileSync(join(other.folder.root, "secret"), "secret", { mode: 0o644 });
        const { out } = await rig.sh(`cat ${other.folder.root}/secret; ls ${rig.home}/attempts`);
        equal(out, "");
      });

    if (isBox)
      test("cannot write elsewhere, reach the network unless it asks to, or see other processes", async () => {
        await using rig = await Rig.open({ isolation });
        const port = await listening();
        const script = `echo x > /etc/millrace-test || echo ro; ls -A /tmp; ls /proc | grep -c '^[0-9]';
        exec 2>/dev/null; (exec 3<>/dev/tcp/127.0.0.1/${port.number}) && echo net;
        grep CapEff /proc/self/status; id -u; pwd`;
        await using attempt = await rig.sandbox.attempt();
        await attempt.run(commandOf(["/bin/bash", "-c", script]));
        const [ro, tmp, pids, caps, uid, pwd] = text(attempt.folder.stdout).split("\n");
        deepEqual([ro, tmp, uid, pwd], ["ro", "build", "65534", "/tmp/build"]);
        ok(Number(pids) < 8);
        match(caps ?? "", /0{16}$/);
        await using open = await rig.sandbox.attempt();
        const probe = `(exec 3<>/dev/tcp/127.0.0.1/${port.number}) && echo net`;
        await open.run(commandOf(["/bin/bash", "-c", probe], { network: true }));
        equal(text(open.folder.stdout), "net\n", "but can if it asks for it");
        port.close();
      });

    if (!isBox)
      test("REAPI-85: a gigabyte of output is truncated", async () => {
        await using rig = await Rig.open({ isolation });
        await using attempt = await rig.sandbox.attempt();
        const ran = await attempt.run(
          commandOf(["/bin/sh", "-c", "head -c 1000000000 /dev/zero"], { timeoutMs: 60_000 }),
        );
        equal(ran.exitCode, 0);
        ok(statSync(attempt.folder.stdout).size < 101_000);
      });
  });

describe("a sandbox", { skip: !isLinux && "needs linux: /proc", timeout: 60_000 }, () => {
  test("REAPI-88: removes what attempts of a crashed node left", async () => {
    const home = rigHome();
    {
      const rig = await Rig.open({ home, isolation: { want: "plain" } });
      await rig.sandbox.attempt();
      await rig.sandbox.close({ quit: true });
    }
    await using rig = await Rig.open({ home, isolation: { want: "plain" } });
    equal(await rig.sandbox.reclaim([]), 1);
    equal(await rig.sandbox.reclaim([]), 0);
  });

  test("refuses a home that its users cannot reach", { skip: !isRoot && "needs root: other users" }, async () => {
    const home = rigHome();
    chmodSync(home, 0o700);
    await rejects(Rig.open({ home, isolation: { want: "plain" } }), (error) => isFault(error, "invalid"));
    rmSync(home, { recursive: true });
  });

  test("that is killed with its launcher leaves nothing of a sandboxed command", { skip: bwrapMissing() }, async () => {
    await using rig = await Rig.open({ isolation: { want: "bubblewrap" } });
    await using attempt = await rig.sandbox.attempt();
    const ran = attempt.run(commandOf(["/bin/sh", "-c", "setsid sleep 1000 & touch up; sleep 1000"]));
    await until("it runs", () => existsSync(join(attempt.folder.root, "up")));
    const first = Number(/"child-pid": (\d+)/.exec(readFileSync(attempt.folder.status, "utf8"))?.[1]);
    ok(isAlive(first));
    const launcher = JSON.parse(text(join(rig.home, "launcher.json"))) as { pid: number };
    process.kill(launcher.pid, "SIGKILL");
    await rejects(ran, (error) => isFault(error, "unavailable"));
    ok(isOver(first));
  });
});

test("the sandbox's own failures are told apart from the command's", () => {
  const started = `{ "child-pid": 7 }\n`;
  equal(boxFailure(1, `${started}{ "exit-code": 1 }`, "bwrap: execvp x: No such file or directory\n"), undefined);
  equal(boxFailure(2, started, "bwrap: x"), undefined);
  deepEqual(boxFailure(1, started, "bwrap: execvp x y: Permission denied\n"), {
    kind: "no-program",
    exitCode: 126,
    message: "x y: Permission denied",
  });
  deepEqual(boxFailure(1, started, "bwrap: Can't mount proc on /newroot/proc: Operation not permitted\n"), {
    kind: "no-sandbox",
    message: "Can't mount proc on /newroot/proc: Operation not permitted",
  });
});

async function listening(): Promise<{ readonly number: number; close(): void }> {
  const server = createServer((socket) => socket.end());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { number: (server.address() as { port: number }).port, close: () => void server.close() };
}
