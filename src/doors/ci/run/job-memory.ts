/**
 * What a job knows between two of its steps, as data: enough for another process, on another machine, to go on after
 * the last step that ended. Files are kept apart from it. It holds masked values, so it is stored sealed.
 */
import { type Dictionary, type PlainValue, plainOf, valueOf } from "#doors/ci/workflow/expression/value.ts";
import type { PostStep } from "./action-work.ts";
import type { Frame, JobState, JobStatus } from "./job-state.ts";
import type { Subject } from "#doors/ci/run/said/artifact-subjects.ts";

export type JobMemory = {
  /** The first of the job's steps that has not ended, by place. */
  readonly next: number;
  /** How many steps were numbered so far. */
  readonly numbered: number;
  readonly status: JobStatus;
  /** What steps set, over what the job began with: the rest is evaluated again, because tokens in it are over. */
  readonly env: Pairs;
  readonly paths: readonly string[];
  /** The steps context. */
  readonly steps: Plain;
  /** Everything that output must not show, in all its forms. */
  readonly masked: readonly string[];
  readonly posts: readonly PostMemory[];
  /** By step: what actions saved before all steps; left out: nothing. */
  readonly savedBefore?: readonly (readonly [key: string, saved: Pairs])[];
  /** What steps declared as artifacts; left out: nothing. */
  readonly subjects?: readonly Subject[];
};

type Pairs = readonly (readonly [string, string])[];
type Plain = Readonly<Record<string, PlainValue>>;

type PostMemory = Pick<PostStep, "name" | "if" | "uses" | "file"> & {
  readonly frame: {
    readonly depth: number;
    readonly key: string;
    readonly github: Plain;
    readonly env: Pairs;
    readonly inputs?: Plain;
    /** Left out: the job's own. */
    readonly steps?: Plain;
  };
  readonly env: Pairs;
  readonly inputs: Pairs;
  readonly state: Pairs;
};

export type Progress = {
  readonly next: number;
  readonly numbered: number;
  readonly posts: readonly PostStep[];
  /** The variables before the first step. */
  readonly initialEnv: ReadonlyMap<string, string>;
};

export function remember(state: JobState, { next, numbered, posts, initialEnv }: Progress): JobMemory {
  return {
    next,
    numbered,
    status: state.root.status,
    env: [...state.env].filter(([name, value]) => initialEnv.get(name) !== value),
    paths: state.paths,
    steps: plainOf(state.root.steps) as Plain,
    masked: state.masks.forms,
    posts: posts.map((post) => postMemory(post, state.root)),
    ...(state.savedBefore.size > 0 && {
      savedBefore: [...state.savedBefore].map(([key, saved]) => [key, [...saved]] as const),
    }),
    ...(state.subjects.all.length > 0 && { subjects: state.subjects.all }),
  };
}

const postMemory = (
  { name, if: condition, uses, file, frame, env, inputs, state }: PostStep,
  root: Frame,
): PostMemory => ({
  name,
  if: condition,
  uses,
  file,
  frame: {
    depth: frame.depth,
    key: frame.key,
    github: plainOf(frame.github) as Plain,
    env: [...frame.env],
    ...(frame.inputs && { inputs: plainOf(frame.inputs) as Plain }),
    ...(frame.steps !== root.steps && { steps: plainOf(frame.steps) as Plain }),
  },
  env: [...env],
  inputs: [...inputs],
  state: [...state],
});

/** The state begins as it does for every job; what steps did to it is added. */
export function recall(state: JobState, memory: JobMemory): readonly PostStep[] {
  for (const [name, value] of memory.env) state.env.set(name, value);
  state.paths = memory.paths;
  for (const [id, value] of Object.entries(memory.steps)) state.root.steps.set(id, valueOf(value));
  state.root.status = memory.status;
  state.masks.addForms(memory.masked);
  for (const [key, saved] of memory.savedBefore ?? []) state.savedBefore.set(key, new Map(saved));
  state.subjects.restore(memory.subjects ?? []);
  return memory.posts.map((post) => postStep(post, state.root));
}

function postStep({ frame, env, inputs, state, ...post }: PostMemory, root: Frame): PostStep {
  const { depth, key, github, inputs: given, steps } = frame;
  return {
    ...post,
    frame: {
      depth,
      key,
      github: valueOf(github) as Dictionary,
      env: new Map(frame.env),
      ...(given && { inputs: valueOf(given) as Dictionary }),
      steps: steps ? (valueOf(steps) as Dictionary) : root.steps,
      status: root.status,
    },
    env: new Map(env),
    inputs: new Map(inputs),
    state: new Map(state),
  };
}
