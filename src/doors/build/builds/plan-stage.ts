/**
 * Planning is claimed work: when everything that a stage needs has ended, the digests of those outputs are filled in as
 * inputs, and the stage's steps become ordinary actions with digests of their own.
 *
 * D1 A plan depends only on the build and the results: planning again gives the same plan.
 * D2 An action is planned only when everything that it needs succeeded; the others of its stage do not wait for it.
 */
import type { Digest } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import type { BlobStore, Store } from "#blobs/store.ts";
import { digestOf } from "#blobs/hashing.ts";
import { grpcCode, isGrpcError } from "#grpc/status.ts";
import type { Plan } from "#kernel/model/model.ts";
import type { PlanInputs } from "#kernel/read/query.ts";
import {
  Action,
  Command,
  type ActionResult,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import type { BuildAction, Group, Input } from "#wire/generated/millrace/build/v1/builds.ts";
import { encode } from "#wire/message.ts";
import { named, type Encoded } from "#worker/outputs/canonical.ts";
import { Pace } from "#worker/visits/pace.ts";
import type { Planner, Planners } from "#worker/runner.ts";
import { eachOf } from "#doors/build/cache/each-of.ts";
import { withEmpty } from "#doors/build/cache/empty-blobs.ts";
import type { ExecutionSettings } from "#doors/build/execute/execution-settings.ts";
import { planAction } from "#doors/build/plan.ts";
import { readAnswer, readOutcome } from "#doors/build/run/outcome.ts";
import { askedFor, completed, messagesOf } from "./action-messages.ts";
import { treeOf, type Leaf, type Placed } from "./input-tree.ts";
import { findMade } from "./made.ts";
import { planKind, readBuildSpec, type BuildSpec } from "./plan-build.ts";
import { RecordedBuilds, type Recorded } from "./recorded.ts";
import { stepTask, stepTemplate, type RefusedStep, type StepSpec } from "./step.ts";

export type PlanPorts = { readonly store: Store; readonly settings: ExecutionSettings };

export function buildPlanners({ store, settings }: PlanPorts): Planners {
  const builds = new RecordedBuilds();
  const planner: Planner = async (inputs, { task }) => {
    const spec = readBuildSpec(inputs.spec);
    if (!spec) return { kind: "fail", reason: "the job is not a build" };
    const blobs = withEmpty(store.forTenant(task.tenant).blobs);
    const recorded = await builds.read(task.tenant, spec.recorded, blobs);
    const group = recorded.groups[task.stage];
    if (!group) return { kind: "fail", reason: `the build has no group ${task.stage}` };
    return await new StagePlanning({ spec, recorded, group, inputs, blobs, settings }).plan();
  };
  return { [planKind]: planner };
}

type Given = {
  readonly spec: BuildSpec;
  readonly recorded: Recorded;
  readonly group: Group;
  readonly inputs: Pick<PlanInputs, "results">;
  readonly blobs: BlobStore;
  readonly settings: ExecutionSettings;
};

const atOnceMax = 8;

export class StagePlanning {
  readonly #given: Given;
  readonly #results = new Map<string, Promise<ActionResult>>();
  readonly #outcomes: ReadonlyMap<string, PlanInputs["results"][number]>;
  readonly #toWrite = new Map<string, Encoded>();
  /** Blobs that are used as they are, and the actions that take them. */
  readonly #taken = new Map<Digest, string[]>();
  readonly #pace = new Pace();

  constructor(given: Given) {
    this.#given = given;
    this.#outcomes = new Map(given.inputs.results.map((result) => [result.key, result]));
  }

  async plan(): Promise<Plan> {
    const { recorded, group, settings } = this.#given;
    const actions = group.actions.flatMap((place) => recorded.build.actions[place] ?? []);
    const runnable = actions.filter((action) => this.#unmet(action) === undefined);
    const [first] = actions;
    if (runnable.length === 0) return { kind: "skip", reason: first ? `${this.#unmet(first)} did not end well` : "" };
    const steps = await eachOf(runnable, atOnceMax, (action) => this.#step(action));
    const lost = await this.#write();
    const tasks = runnable.map(({ key }, i) => stepTask(key, lostOf(key, lost) ?? steps[i] ?? notPlanned));
    return { kind: "tasks", set: { template: stepTemplate(group, settings.queueMs), tasks } };
  }

  /** D2 */
  #unmet({ inputs, after }: BuildAction): string | undefined {
    const needs = [
      ...after,
      ...inputs.flatMap(({ source }) => (source?.kind === "output" ? [source.value.action] : [])),
    ];
    return needs.find((key) => this.#outcomes.get(key)?.phase !== "SUCCEEDED");
  }

  /** Yields in between: a thousand actions in one go would block all other work of this node. */
  async #step(action: BuildAction): Promise<StepSpec | RefusedStep> {
    if (this.#pace.isLong()) await this.#pace.rest();
    try {
      return await this.#spec(action);
    } catch (error) {
      // The action's own mistake, and the same however often it is planned.
      if (isFault(error, "invalid") || isGrpcError(error, grpcCode.invalidArgument)) return { refused: error.message };
      throw error;
    }
  }

  async #spec(given: BuildAction): Promise<StepSpec | RefusedStep> {
    const { recorded, spec, settings } = this.#given;
    const placed: Placed<Leaf>[] = [];
    for (const input of given.inputs) {
      const leaf = await this.#leaf(input);
      if (!leaf) return { refused: `there is nothing at ${madeAt(input)}, which it takes` };
      placed.push({ path: input.path, leaf });
      if (leaf.kind !== "link") this.#take(leaf.digest, given.key);
    }
    const { root, directories } = treeOf(placed);
    const messages = messagesOf(given);
    const command = named(encode(Command, messages.command), "sha256");
    const whole = completed(messages.action, command.digest, root);
    const action = named(encode(Action, whole), "sha256");
    for (const one of [...directories, command, action]) this.#toWrite.set(one.digest, one);
    const { principal, build } = recorded;
    // D1: the build's own time, not that of the planning.
    const known = {
      fn: "sha256",
      action: action.digest,
      principal,
      nowMs: spec.submittedAtMs,
      unique: given.key,
    } as const;
    const planned = planAction(askedFor(given, build, known), whole, messages.command, settings);
    const without = withoutCache(given, recorded);
    return { ...planned, ...(without && { without }) };
  }

  async #leaf({ source, isExecutable }: Input): Promise<Leaf | undefined> {
    switch (source?.kind) {
      case "blob":
        return { kind: "file", digest: source.value, isExecutable };
      case "tree":
        return { kind: "directory", digest: source.value };
      case "link":
        return { kind: "link", target: source.value };
      case "contents": {
        const bytes = Buffer.from(source.value);
        const digest = digestOf(bytes);
        this.#toWrite.set(digest, { digest, bytes });
        return { kind: "file", digest, isExecutable };
      }
      case "output": {
        const { action, path } = source.value;
        const found = await findMade(await this.#result(action), path, this.#given.blobs);
        for (const one of found?.directories ?? []) this.#toWrite.set(one.digest, one);
        return found?.leaf;
      }
      default:
        return undefined;
    }
  }

  /** Many actions take from the same one: its result is read once. */
  #result(key: string): Promise<ActionResult> {
    let result = this.#results.get(key);
    if (!result) this.#results.set(key, (result = this.#read(key)));
    return result;
  }

  async #read(key: string): Promise<ActionResult> {
    const outcome = readOutcome(this.#outcomes.get(key)?.result);
    if (!outcome) return nothingMade;
    return (await readAnswer(outcome, this.#given.blobs)).result ?? nothingMade;
  }

  #take(digest: Digest, key: string): void {
    const takers = this.#taken.get(digest);
    if (takers) takers.push(key);
    else this.#taken.set(digest, [key]);
  }

  /**
   * Asking for blobs counts as using them: they are not evicted while the actions wait for their turn. Returns the
   * missing ones, by the actions that would have taken them.
   */
  async #write(): Promise<ReadonlyMap<string, Digest>> {
    const { blobs } = this.#given;
    const missing = await blobs.missing([...new Set([...this.#toWrite.keys(), ...this.#taken.keys()])]);
    const lost = new Map<string, Digest>();
    await eachOf(missing, atOnceMax, async (digest) => {
      const encoded = this.#toWrite.get(digest);
      if (encoded) await blobs.write(digest, encoded.bytes);
      else for (const key of this.#taken.get(digest) ?? []) lost.set(key, digest);
    });
    return lost;
  }
}

const notPlanned: RefusedStep = { refused: "it was not planned" };

function lostOf(key: string, lost: ReadonlyMap<string, Digest>): RefusedStep | undefined {
  const digest = lost.get(key);
  return digest === undefined ? undefined : { refused: `an input of it is no longer in the store: ${digest}` };
}

/** The result of an action without outputs. */
export const nothingMade: ActionResult = {
  outputFiles: [],
  outputFileSymlinks: [],
  outputSymlinks: [],
  outputDirectories: [],
  outputDirectorySymlinks: [],
  exitCode: 0,
  stdoutRaw: new Uint8Array(),
  stderrRaw: new Uint8Array(),
};

const madeAt = ({ source, path }: Input): string =>
  source?.kind === "output" ? `${source.value.path} of ${source.value.action}` : path;

function withoutCache({ doNotCache, skipCacheLookup }: BuildAction, { mayReadCache }: Recorded): StepSpec["without"] {
  if (doNotCache) return "do-not-cache";
  if (skipCacheLookup) return "skip-cache-lookup";
  return mayReadCache ? undefined : "may-not-read";
}
