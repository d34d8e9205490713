/** From a plan and what is known of stages that have ended to the stages that run next. */
import { Cutter, type CutInput } from "./cutter.ts";
import { cutOperator } from "./operators.ts";
import { Unsplittable } from "#doors/batch/plan/unsplittable.ts";
import type { Facts, Stage, StageFacts } from "#doors/batch/plan/stage.ts";

export type NextStages = {
  /** All that can run now, at the same time. */
  readonly stages: readonly Stage[];
  /** Whether the query's result is what the only one of them writes. */
  readonly isLast: boolean;
  /** Stages that have ended and that the query goes on from. */
  readonly used: ReadonlyMap<string, Stage>;
};

export function cutPlan(input: CutInput, facts: Facts): NextStages {
  const cutter = new Cutter(input, facts, cutOperator);
  const { how } = input;
  const root = cutter.query(input);
  if (!root) return { stages: [...cutter.wanted.values()], isLast: false, used: cutter.used };
  const about = how.kind === "one" ? `all in one task: ${how.why}` : "result";
  return { stages: [cutter.stage(about, root, { kind: "result" })], isLast: true, used: cutter.used };
}

const wavesMax = 60;

/** All waves of stages, where every stage is as large as the sources make expect. Throws Unsplittable. */
export function foreseeStages(input: CutInput): readonly NextStages[] {
  const facts = new Map<string, StageFacts>();
  const waves: NextStages[] = [];
  while (waves.length < wavesMax) {
    const next = cutPlan(input, facts);
    waves.push(next);
    if (next.isLast) return waves;
    for (const stage of next.stages) facts.set(stage.id, foreseen(input));
  }
  throw new Unsplittable(`more than ${wavesMax} stages behind each other`);
}

/** Large, so that all exchanges of a plan are seen. */
const foreseen = ({ settings }: CutInput): StageFacts => ({
  rows: 0,
  bytes: settings.broadcastBytes * 2 + 1,
  partitionBytes: [],
  packs: 2,
  cuts: [],
});
