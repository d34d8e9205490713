/**
 * A network of a lane's own, with nothing in it but the machine itself (lo). Making one for every run, and above all
 * clearing it away, takes the kernel longer than all else that a sandbox is made of. One run at a time is in a lane and
 * none of its processes outlives it, so what runs there later meets nobody.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { Fault } from "#base/fault.ts";

const nsenter = "/usr/bin/nsenter";
const setpriv = "/usr/bin/setpriv";
/** It brings lo up besides, which nothing else that is on every machine can do. */
const maker = ["bwrap", "--unshare-net", "--dev-bind", "/", "/", "--die-with-parent", "--", "/bin/sh", "-c"] as const;
const triedMsMax = 20_000;

/** Found out by trying. Needs root. */
export function canMakeNetworks(): boolean {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return false;
  const works = ([program, ...args]: readonly string[]): boolean =>
    spawnSync(program ?? "", args, { stdio: "ignore", timeout: triedMsMax }).status === 0;
  return works([...maker, ":"]) && works([...enterWords("/proc/self/ns/net", 65_534), "/bin/sh", "-c", ":"]);
}

/** The words before a command that put it into the network, as a user who cannot leave it. Needs root. */
export const enterWords = (network: string, uid: number): readonly string[] => [
  nsenter,
  `--net=${network}`,
  "--",
  setpriv,
  `--reuid=${uid}`,
  `--regid=${uid}`,
  "--clear-groups",
  "--",
];

export class LaneNetwork implements Disposable {
  readonly #fd: number;

  private constructor(fd: number) {
    this.#fd = fd;
  }

  static async make(): Promise<LaneNetwork> {
    const [program, ...args] = [...maker, 'echo "$$"; read -r _'];
    const child = spawn(program ?? "", args, { stdio: ["pipe", "pipe", "ignore"], cwd: "/", timeout: triedMsMax });
    const ended = once(child, "exit").then(() => []);
    const [line] = (await Promise.race([once(child.stdout, "data"), ended])) as [Buffer?];
    try {
      if (line === undefined) throw new Fault("unavailable", "make network", { why: "bubblewrap could not" });
      // Open, it lasts when nobody is in it any more.
      return new LaneNetwork(openSync(`/proc/${Number(line)}/ns/net`, "r"));
    } finally {
      child.stdin.end();
      await ended;
    }
  }

  get path(): string {
    return `/proc/${process.pid}/fd/${this.#fd}`;
  }

  [Symbol.dispose](): void {
    closeSync(this.#fd);
  }
}
