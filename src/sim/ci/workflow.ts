/** Workflows of the simulation, drawn from the seed. */
import type { Random } from "#base/random.ts";

export type Drawn = {
  readonly text: string;
  /** Its concurrency group; each workflow has one, and is named after it. */
  readonly group: string;
  /** Which steps of which jobs have effects. */
  readonly effects: readonly { readonly job: string; readonly cells: number; readonly steps: readonly number[] }[];
};

const hows = ["probe", "idempotent", "ask"] as const;

export function drawWorkflow(random: Random): Drawn {
  const effects: Drawn["effects"][number][] = [];
  const stepsOf = (job: string, cells: number, count: number): string => {
    const steps = Array.from({ length: count }, () =>
      random.chance(0.6) ? `effect ${random.pick(hows)}` : "work plain",
    );
    effects.push({ job, cells, steps: steps.flatMap((step, at) => (step.startsWith("effect") ? [at] : [])) });
    return steps.map((step) => `      - run: ${step}`).join("\n");
  };
  const cells = random.between(1, 3);
  const group = random.pick(["group-a", "group-b"]);
  const text = `
name: ${group}
on: push
concurrency: { group: ${group}, cancel-in-progress: ${random.chance(0.4)} }
jobs:
  build:
    runs-on: x
    x-millrace: { retry: { max: 10 } }
    strategy: { fail-fast: false, matrix: { n: [${Array.from({ length: cells }, (_, n) => n).join(", ")}] } }
    steps:
${stepsOf("build", cells, random.between(3, 7))}
  deploy:
    needs: build
    runs-on: x
    x-millrace: { retry: { max: 10 } }
    environment: production
    steps:
${stepsOf("deploy", 1, random.between(2, 5))}
  tell:
    needs: deploy
    if: always()
    runs-on: x
    x-millrace: { retry: { max: 10 } }
    steps:
${stepsOf("tell", 1, 1)}
`;
  return { text, group, effects };
}
