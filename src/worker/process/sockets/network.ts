/**
 * A network namespace for a lane that contains only the loopback device. Creating one for every run, and above all
 * removing it, takes the kernel longer than everything else in a sandbox. A lane has one run at a time and none of its
 * processes outlives it, so sharing the namespace between runs is safe.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { Fault } from "#base/fault.ts";

const nsenter = "/usr/bin/nsenter";
const setpriv = "/usr/bin/setpriv";
/** bwrap also brings lo up, which no other common program does. */
const maker = ["bwrap", "--unshare-net", "--dev-bind", "/", "/", "--die-with-parent", "--", "/bin/sh", "-c"] as const;
const triedMsMax = 20_000;

/** Whether this process can create network namespaces: creates one to find out. Only root can. */
export function canMakeNetworks(): boolean {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return false;
  const works = ([program, ...args]: readonly string[]): boolean =>
    spawnSync(program ?? "", args, { stdio: "ignore", timeout: triedMsMax }).status === 0;
  return works([...maker, ":"]) && works([...enterArguments("/proc/self/ns/net", 65_534), "/bin/sh", "-c", ":"]);
}

/** The command prefix that enters the network, as a user who cannot leave it. Needs root. */
export const enterArguments = (network: string, uid: number): readonly string[] => [
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
      if (line === undefined) throw new Fault("unavailable", "make network", { why: "bubblewrap failed" });
      // The open file keeps the namespace alive without processes in it.
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
