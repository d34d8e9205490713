/** A node that is a plain user without control groups, and must find leftover processes by other means. */
import { deepEqual, ok } from "node:assert/strict";
import { spawn } from "node:child_process";
import { chownSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { describe, test } from "node:test";
import { otherUserCannotRun } from "#testing/postgres-user.ts";
import { until } from "#testing/until.ts";
import { killQuietly } from "./groups/group.ts";
import { isAlive } from "./launcher/proc.ts";
import { rigHome, rigUidBase, text } from "./testing/rig.ts";

const isRoot = process.getuid?.() === 0;
const lacks = (process.platform !== "linux" && "needs linux: /proc") || otherUserCannotRun();
const uid = isRoot ? rigUidBase + 777 : (process.getuid?.() ?? 0);

class PlainUser implements Disposable {
  readonly #home = rigHome();
  readonly #out = rigHome();
  readonly #pidFile = join(this.#out, "pid");

  constructor() {
    for (const path of [this.#home, this.#out]) if (isRoot) chownSync(path, uid, uid);
  }

  get daemonPid(): number {
    return Number(text(this.#pidFile));
  }

  /** Runs the program, in which `rig` is defined, as that user; returns what it reports. */
  async node<T>(program: string): Promise<T> {
    const file = join(this.#out, "node.ts");
    const rigAt = JSON.stringify(new URL("./testing/rig.ts", import.meta.url).href);
    writeFileSync(
      file,
      `const { SpawnerRig } = await import(${rigAt});
       const rig = await SpawnerRig.open({}, ${JSON.stringify(this.#home)});
       const { until } = await import(${JSON.stringify(import.meta.resolve("#testing/until.ts"))});
       const kind = rig.spawner.groups.kind;
       const say = (what) => console.log(JSON.stringify(what));
       ${program}`,
    );
    const drop = isRoot ? { uid, gid: uid } : {};
    const node = spawn(process.execPath, [file], { stdio: ["ignore", "pipe", "inherit"], cwd: this.#out, ...drop });
    return JSON.parse(await textOf(node.stdout)) as T;
  }

  /** A command that starts a daemon: it forks twice, closes its files, changes to the folder, and stays. */
  daemon(start: string, folder: string): string {
    const file = join(this.#out, "daemon.sh");
    const stay = `sh -c 'echo $$ > ${this.#pidFile}; exec sleep 1000' &`;
    writeFileSync(file, `${folder}\nexec <&- >&- 2>&-\n${stay}\n`);
    return `${start} /bin/sh ${file} & while ! test -s ${this.#pidFile}; do sleep 0.01; done; sleep 0.1`;
  }

  [Symbol.dispose](): void {
    if (this.daemonPid > 1) killQuietly(this.daemonPid);
    for (const path of [this.#home, this.#out]) rmSync(path, { recursive: true, force: true });
  }
}

type Said = { readonly kind: string; readonly said?: unknown };
const grouped = "needs a user without control groups: this one has some";

/** How the daemon is started, and its folder. */
const daemons: Readonly<Record<string, readonly [start: string, folder: string]>> = {
  "in a session of its own": ["setsid", "cd /"],
  "without its variables": ["env -i /usr/bin/setsid", "cd /"],
  "in a folder that is gone": ["setsid", "cd /tmp && mkdir -p gone.$$ && cd gone.$$ && rmdir ../gone.$$"],
};

describe("a plain user's run", { skip: lacks, timeout: 60_000 }, () => {
  for (const [how, [start, folder]] of Object.entries(daemons))
    test(`N2: is reported as ended only when its daemon is dead, ${how}`, async (t) => {
      using user = new PlainUser();
      const { kind, said } = await user.node<Said>(
        `const { end } = await rig.sh(${JSON.stringify(user.daemon(start, folder))});
         say({ kind, said: [end.why, end.note] });
         await rig[Symbol.asyncDispose]();`,
      );
      if (kind !== "none") return t.skip(grouped);
      deepEqual(said, ["exited", null]);
      deepEqual([user.daemonPid > 1, isAlive(user.daemonPid)], [true, false]);
    });

  test("N2: also if its time is up", async (t) => {
    using user = new PlainUser();
    const { kind, said } = await user.node<Said>(
      `const script = ${JSON.stringify(`${user.daemon("setsid", "cd /")}; sleep 1000`)};
       const { end } = await rig.sh(script, { timeoutMs: 1_000 });
       say({ kind, said: end.why });
       await rig[Symbol.asyncDispose]();`,
    );
    if (kind !== "none") return t.skip(grouped);
    deepEqual([said, user.daemonPid > 1, isAlive(user.daemonPid)], ["timed-out", true, false]);
  });

  test("N4: a daemon dies with its launcher", async (t) => {
    using user = new PlainUser();
    const { kind } = await user.node<Said>(
      `const { attempt } = await rig.start(["/bin/sh", "-c", ${JSON.stringify(
        `${user.daemon("setsid", "cd /")}; touch up; sleep 1000`,
      )}]);
       const { existsSync } = await import("node:fs");
       await until("it is up", () => existsSync([attempt, "work", "up"].join("/")));
       process.kill(rig.spawner.launcherPid, "SIGKILL");
       say({ kind });
       process.exit(0);`,
    );
    if (kind !== "none") return t.skip(grouped);
    ok(user.daemonPid > 1);
    await until("the daemon is gone", () => !isAlive(user.daemonPid));
  });

  test("a run does not affect those beside it", async (t) => {
    using user = new PlainUser();
    const { kind, said } = await user.node<Said>(
      `const long = rig.sh("sleep 1; echo long");
       const short = await rig.sh("setsid sleep 1000 & echo short");
       say({ kind, said: [short.out, (await long).out] });
       await rig[Symbol.asyncDispose]();`,
    );
    if (kind !== "none") return t.skip(grouped);
    deepEqual(said, ["short\n", "long\n"]);
  });
});
