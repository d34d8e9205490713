/** A process of many agents (agents.ts), and what they say. */
import { spawn, type ChildProcess } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { endChild } from "#testing/end-child.ts";
import { until } from "#testing/until.ts";

export type CrowdSettings = {
  readonly url: string;
  readonly token: string;
  readonly caFile?: string;
  readonly count: number;
  /** Machines have the label svc=s0 to svc=s<services - 1>, in turn. */
  readonly services: number;
  readonly attachAtOnce: number;
  /** Whether they answer goals with "healthy". */
  readonly follows: boolean;
};

type Word =
  | { readonly kind: "attached" | "state"; readonly attached: number; readonly failed: number }
  | { readonly kind: "goal"; readonly service: string; readonly version: number; readonly atMs: number };

export class Crowd implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #heard = new Map<string, number[]>();
  #state: { readonly attached: number; readonly failed: number } | undefined;

  constructor(settings: CrowdSettings) {
    const program = join(import.meta.dirname, "agents.ts");
    this.#child = spawn(process.execPath, ["--max-old-space-size=4096", program, JSON.stringify(settings)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    if (this.#child.stdout)
      createInterface({ input: this.#child.stdout }).on("line", (line) => {
        const word = JSON.parse(line) as Word;
        if (word.kind !== "goal") this.#state = word;
        else this.heard(word.service, word.version).push(word.atMs);
      });
  }

  async attached(limitMs: number): Promise<{ readonly attached: number; readonly failed: number }> {
    await until("the agents are attached", () => this.#state !== undefined, { limitMs, everyMs: 50 });
    return this.#state ?? { attached: 0, failed: 0 };
  }

  /** When each agent got this version, by the wall clock. */
  heard(service: string, version: number): number[] {
    const key = `${service} ${version}`;
    const known = this.#heard.get(key) ?? [];
    this.#heard.set(key, known);
    return known;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await endChild(this.#child, "SIGKILL");
  }
}
