/**
 * Branches that no seed can be expected to reach, and why. Every hunt checks the list: an entry that was reached after
 * all, or no longer exists, is an error in the list, and the hunt fails.
 */
import type { Block } from "#sim/coverage.ts";

export type Excuse = { readonly file: string; readonly code: string; readonly why: string };

const level = "nodes of an older feature level are not simulated (tags.test.ts, plan-decides.test.ts; e2e/ops)";

export const unreachable: readonly Excuse[] = [
  {
    file: "decide/feature.ts",
    code:
      "const why = `needs feature level ${level}, the cluster is at ${state.featureLevel}: upgrade its remaining " +
      'nodes`; return { kind: "invalid", path, why };',
    why: level,
  },
  {
    file: "decide/submit.ts",
    code:
      "const typed = stages.findIndex(({ tasks }) => tasks?.template.retries); if (typed !== -1) return " +
      "tooNew(state, `stages[${typed}].tasks.template.retries`, retriesByReason); " +
      "if (state.featureLevel >= taskLocks) return undefined; " +
      "const locked = stages.findIndex(({ tasks }) => tasks?.template.lock); if (locked !== -1) return " +
      "tooNew(state, `stages[${locked}].tasks.template.lock`, taskLocks); " +
      "if (state.featureLevel >= newestFeatures) return undefined; " +
      'if (cancelGraceMs !== undefined) return tooNew(state, "cancelGraceMs"); ' +
      "const at = stages.findIndex(({ tasks }) => tasks && !isPlainTemplate(tasks.template)); if (at !== -1) return " +
      "tooNew(state, `stages[${at}].tasks.template`); " +
      "const array = stages.findIndex(({ tasks, manifest }) => tasks?.array || manifest !== undefined); " +
      "return array === -1 ? undefined",
    why: level,
  },
  {
    file: "decide/submit.ts",
    code: ": tooNew(state, `stages[${array}].tasks.array`)",
    why: level,
  },
  {
    file: "step.ts",
    code: "catch (error) { state.agenda.file(item, nowMs + 1_000, nowMs); work.note(error); continue; }",
    why: "what is due is decided from what apply has made: only a mistake of our own throws (mistakes.test.ts)",
  },
  {
    file: "step.ts",
    code: "catch (error) { this.note(error); return none; }",
    why: "what follows is decided from what apply has made: only a mistake of our own throws (mistakes.test.ts)",
  },
  {
    file: "step.ts",
    code: "catch (error) { work.note(error); return undefined; }",
    why: "a grant is decided from what apply has made: only a mistake of our own throws (mistakes.test.ts)",
  },
  {
    file: "apply/job.ts",
    code: "map.clear();",
    why: "needs a thousand different stages in one shard (mistakes.test.ts)",
  },
];

/** Branches that end in an assertion: reaching one is a failure, and reported as such. */
const asserts = /^(default: return |: |\?\? |return )(unreachable|missing)\(/;

/** The files of `decide` itself: they read a command or the state and say what it leads to. */
const decides = /^(decide\/|step\.ts$|apply\/settle)/;

export type Verdict = {
  /** Branches of `decide` without an excuse. */
  readonly decide: readonly Block[];
  /** Branches that apply and answer. */
  readonly rest: readonly Block[];
  readonly assertions: number;
  readonly excused: readonly Excuse[];
  readonly wrongExcuses: readonly Excuse[];
};

export function judge(blocks: readonly Block[], excuses = unreachable): Verdict {
  const isAssertion = ({ code }: Block): boolean => asserts.test(code);
  const fits = ({ file, code }: Excuse, block: Block): boolean => block.file === file && block.code === code;
  const isExcused = (block: Block): boolean => excuses.some((excuse) => fits(excuse, block));
  const isRight = (excuse: Excuse): boolean => blocks.some((block) => fits(excuse, block));
  const open = blocks.filter((block) => !isAssertion(block) && !isExcused(block));
  return {
    decide: open.filter(({ file }) => decides.test(file)),
    rest: open.filter(({ file }) => !decides.test(file)),
    assertions: blocks.filter(isAssertion).length,
    excused: excuses.filter(isRight),
    wrongExcuses: excuses.filter((excuse) => !isRight(excuse)),
  };
}

/** What was reached and what was not, as text. */
export function describeVerdict({ decide, rest, assertions, excused, wrongExcuses }: Verdict): readonly string[] {
  const show = ({ file, line, code }: Block): string => `  ${file}:${line}  ${code.slice(0, 100)}`;
  return [
    decide.length === 0 ? "every branch of decide was hit" : `branches of decide that no seed hit: ${decide.length}`,
    ...decide.map(show),
    rest.length === 0
      ? "and every branch of what applies and answers"
      : `branches of what applies and answers that no seed hit: ${rest.length}`,
    ...rest.map(show),
    `not counted: ${assertions} assertions, which held, and what unreachable.ts excuses:`,
    ...excused.map(({ file, code, why }) => `  ${file}  ${code.slice(0, 60)}: ${why}`),
    ...wrongExcuses.map(({ file, code }) => `FAILED excused, but reached or no longer there: ${file}  ${code}`),
  ];
}
