/**
 * Every goal that a machine followed, read from its disk as it changes: versions must grow, and a wave beyond the first
 * must carry a certificate whose evidence says that the wave before was healthy.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Goal } from "#doors/deploy/goal/goal.ts";
import type { Signed } from "#doors/deploy/signing/signing.ts";
import type { ChaosLab } from "./lab.ts";

const lookEveryMs = 10;

type Evidence = { readonly wave: number; readonly verdict: { readonly verdict: string } };

export class GoalWatch implements Disposable {
  readonly #lab: ChaosLab;
  readonly #timer: NodeJS.Timeout;
  readonly #goals = new Map<string, Goal[]>();

  constructor(lab: ChaosLab) {
    this.#lab = lab;
    this.#timer = setInterval(() => this.#look(), lookEveryMs);
  }

  get seen(): number {
    return [...this.#goals.values()].reduce((sum, goals) => sum + goals.length, 0);
  }

  async check(when: string): Promise<void> {
    const checked = new Set<string>();
    for (const [machine, goals] of this.#goals)
      for (const [index, goal] of goals.entries()) {
        const before = goals[index - 1];
        if (before && goal.version <= before.version)
          this.#lab.violations.push(`${when}: ${machine} went from goal ${before.version} to ${goal.version}`);
        const key = `${goal.version} ${goal.evidence}`;
        if (goal.kind !== "release" || goal.wave === 0 || checked.has(key)) continue;
        checked.add(key);
        const wrong = await this.#wrongEvidence(goal);
        if (wrong !== undefined) this.#lab.violations.push(`${when}: goal ${goal.version}: ${wrong}`);
      }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  async #wrongEvidence({ certificate, evidence, wave }: Goal): Promise<string | undefined> {
    if (!certificate || evidence === null) return `wave ${wave} has no certificate`;
    const said = JSON.parse(certificate.body) as { readonly wave: number; readonly evidence: string };
    if (said.wave !== wave - 1 || said.evidence !== evidence) return `its certificate is for wave ${said.wave}`;
    const found = (await this.#lab.call("GET", `/v1/deploy/blobs/${evidence}`)) as Evidence;
    return found.wave === wave - 1 && found.verdict.verdict === "healthy"
      ? undefined
      : `its evidence says ${found.verdict.verdict} of wave ${found.wave}`;
  }

  #look(): void {
    for (const machine of this.#lab.machines) {
      const goals = this.#goals.get(machine) ?? [];
      this.#goals.set(machine, goals);
      const path = join(this.#lab.fleet.folder, machine, "services", "web", "goal.json");
      try {
        const { body } = JSON.parse(readFileSync(path, "utf8")) as Signed;
        const goal = Goal.parse(JSON.parse(body));
        if (goals.at(-1)?.version !== goal.version) goals.push(goal);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      }
    }
  }
}
