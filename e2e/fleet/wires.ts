/** A network namespace for each node, all on one bridge: a node's link can be cut without notice. */
import { execFileSync, spawnSync } from "node:child_process";

/** The reason to skip if there can be none; undefined if there can. */
export function wiresMissing(): string | undefined {
  if (process.getuid?.() !== 0) return "needs root: network namespaces are made by root only";
  const found = ["ip", "nsenter"].find((program) => spawnSync(program, ["-V"]).error !== undefined);
  return found === undefined ? undefined : `needs ${found}: apt-get install iproute2 util-linux brings it`;
}

const ip = (...args: readonly string[]): void => void execFileSync("ip", [...args], { stdio: "pipe" });

export class Wires implements Disposable {
  readonly #id = `mr${process.pid.toString(36)}`;
  readonly #net = `10.${100 + (process.pid % 100)}.${Math.floor(process.pid / 100) % 250}`;
  #count = 0;

  constructor() {
    ip("link", "add", this.#id, "type", "bridge");
    process.on("exit", this.#onExit); // when the run is cut short
    ip("addr", "add", `${this.gateway}/24`, "dev", this.#id);
    ip("link", "set", this.#id, "up");
  }

  /** The address of everything outside the namespaces, as seen from inside. */
  get gateway(): string {
    return `${this.#net}.254`;
  }

  /** One more namespace: its address, and the command that runs programs in it. */
  add(): { readonly host: string; readonly within: readonly string[]; readonly wire: number } {
    const wire = (this.#count += 1);
    const host = `${this.#net}.${wire}`;
    const within = ["nsenter", `--net=/var/run/netns/${this.#space(wire)}`];
    const inside = (...args: readonly string[]): void => void execFileSync("nsenter", [...within.slice(1), ...args]);
    ip("netns", "add", this.#space(wire));
    ip("link", "add", this.#link(wire), "type", "veth", "peer", "name", "eth0", "netns", this.#space(wire));
    ip("link", "set", this.#link(wire), "master", this.#id, "up");
    inside("ip", "addr", "add", `${host}/24`, "dev", "eth0");
    for (const device of ["lo", "eth0"]) inside("ip", "link", "set", device, "up");
    return { host, within, wire };
  }

  cut(wire: number): void {
    ip("link", "set", this.#link(wire), "down");
  }

  mend(wire: number): void {
    ip("link", "set", this.#link(wire), "up");
  }

  [Symbol.dispose](): void {
    this.#onExit();
    process.off("exit", this.#onExit);
  }

  readonly #onExit = (): void => {
    for (let wire = 1; wire <= this.#count; wire += 1) spawnSync("ip", ["netns", "del", this.#space(wire)]);
    spawnSync("ip", ["link", "del", this.#id]);
  };

  #space(wire: number): string {
    return `${this.#id}n${wire}`;
  }

  #link(wire: number): string {
    return `${this.#id}w${wire}`;
  }
}
