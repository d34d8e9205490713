/**
 * What a worker does for an action of a build: takes the result from the cache, or runs it like any other action.
 * Unlike a single action, a step whose command failed has failed: nothing is built on its outputs.
 *
 * D3 A step has succeeded only if its command did and all of its outputs exist.
 */
import type { Digest } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import { digestOf } from "#blobs/hashing.ts";
import type { BlobStore, Store } from "#blobs/store.ts";
import { grpcCode } from "#grpc/status.ts";
import { ActionResult } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { decode } from "#wire/message.ts";
import type { RunContext, RunOutcome, Runners } from "#worker/runner.ts";
import { Missed, type ActionCacheService } from "#doors/build/cache/action-cache.ts";
import { closureOf } from "#doors/build/cache/closure.ts";
import { numberOf, wireOf } from "#doors/build/digests.ts";
import type { BuildCall } from "#doors/build/call.ts";
import { withEmpty } from "#doors/build/cache/empty-blobs.ts";
import { readAction } from "#doors/build/execute/execution-inputs.ts";
import {
  outcomeText,
  pinnable,
  readAnswer,
  readOutcome,
  tooManyText,
  type RanBecause,
} from "#doors/build/run/outcome.ts";
import type { SharedRun } from "#doors/build/run/shared.ts";
import type { Seen } from "#doors/build/why/seen.ts";
import { askedFor } from "./action-messages.ts";
import { failureText } from "./failure-text.ts";
import { notMade } from "./made.ts";
import { stepKind } from "./plan-build.ts";
import { readStep, type StepSpec } from "./step.ts";

export type StepPorts = {
  readonly store: Store;
  readonly results: Pick<ActionCacheService, "look">;
  /** Runs an action, whatever its outcome. */
  readonly run: SharedRun;
  readonly seen?: Pick<Seen, "stored"> | undefined;
};

export const stepRunners = (ports: StepPorts): Runners => ({
  [stepKind]: (context) => runStep(context, ports),
});

async function runStep(context: RunContext, ports: StepPorts): Promise<RunOutcome> {
  const { task } = context;
  const spec = readStep(task.spec);
  if (!spec) throw new Fault("invalid", "run step", { task: task.taskId, why: "no action is named" });
  if ("refused" in spec) return { kind: "failed", reason: "user-failure", message: spec.refused };
  return await new Step(context, spec, ports).run();
}

const tailLengthMax = 1_200;

class Step {
  readonly #context: RunContext;
  readonly #spec: StepSpec;
  readonly #ports: StepPorts;
  readonly #blobs: BlobStore;

  constructor(context: RunContext, spec: StepSpec, ports: StepPorts) {
    this.#context = context;
    this.#spec = spec;
    this.#ports = ports;
    this.#blobs = withEmpty(ports.store.forTenant(context.task.tenant).blobs);
  }

  async run(): Promise<RunOutcome> {
    const outputs = await this.#outputs();
    const { without } = this.#spec;
    const looked = without ? { because: { kind: without } } : await this.#look(outputs);
    if ("done" in looked) return looked.done;
    const outcome = await this.#ports.run(this.#context, looked.because);
    return outcome.kind === "done" ? await this.#judge(outcome, outputs, looked.because) : outcome;
  }

  /** Its declared outputs; none if the action cannot be read, which running it will report. */
  async #outputs(): Promise<readonly string[]> {
    try {
      return (await readAction(this.#spec.action, this.#spec.fn, this.#blobs)).command.outputPaths;
    } catch (error) {
      if (isFault(error, "not-found")) return [];
      throw error;
    }
  }

  async #look(outputs: readonly string[]): Promise<{ readonly done: RunOutcome } | { readonly because: RanBecause }> {
    const { instance: instanceName, action, fn } = this.#spec;
    const request = { instanceName, actionDigest: wireOf(action), digestFunction: numberOf(fn) };
    const wanted = { inlineStdout: false, inlineStderr: false, inlineOutputFiles: [] };
    const found = await this.#ports.results.look({ ...request, ...wanted }, this.#call());
    if (found instanceof Missed) return { because: found.reason };
    const result = decode(ActionResult, found);
    // D3: another client may have declared fewer outputs.
    const [lacking] = notMade(result, outputs);
    if (lacking !== undefined) return { because: { kind: "lacks-output", output: lacking } };
    return { done: await this.#cached(result, digestOf(found)) };
  }

  /** The submitter's permissions were checked when the build was planned. */
  #call(): BuildCall {
    const { task, signal } = this.#context;
    const { principal, instance: instanceName, mnemonic: name, target: key } = this.#spec;
    return {
      caller: { tenant: task.tenant, principal, may: () => true, refusal: () => undefined },
      headers: { get: () => undefined },
      signal,
      metadata: metadataFor(key, name, instanceName, task.jobId),
    };
  }

  async #cached(result: ActionResult, named: Digest): Promise<RunOutcome> {
    const { fn, instance, action } = this.#spec;
    const closure = await closureOf(result, fn, this.#blobs);
    const digests = pinnable([named, ...closure.digests()]);
    const tooMany = tooManyText(digests);
    if (tooMany !== undefined) return { kind: "failed", reason: "user-failure", message: tooMany };
    const payload = outcomeText({ instance, action, result: named, code: 0, exitCode: 0, cached: true });
    return { kind: "done", payload, digests };
  }

  async #judge(done: Done, outputs: readonly string[], because: RanBecause): Promise<RunOutcome> {
    const outcome = readOutcome({ payload: done.payload, digests: [] });
    if (!outcome) throw new Fault("internal", "run step", { why: "an action ended without an outcome" });
    const { result, status, message } = await readAnswer(outcome, this.#blobs);
    const lacking = result && outcome.code === 0 && outcome.exitCode === 0 ? notMade(result, outputs) : [];
    if (outcome.code === 0 && outcome.exitCode === 0 && lacking.length === 0) {
      await this.#noteStored(done);
      return { ...done, payload: outcomeText({ ...outcome, because }) };
    }
    const why = status?.message || (lacking.length > 0 ? notMadeText(lacking) : `exit code ${outcome.exitCode}`);
    const tail = await this.#tail(result);
    const text = [why, tail || message].filter((part) => part !== "").join(": ");
    const isLost = status?.code === grpcCode.failedPrecondition && status.details.length > 0;
    return {
      kind: "failed",
      reason: isLost ? "input-lost" : "user-failure",
      message: failureText(text, this.#spec.action, outcome),
    };
  }

  /** So that `why` can compare the next action of this name with it. */
  async #noteStored({ publish }: Done): Promise<void> {
    const { instance, action, target, mnemonic } = this.#spec;
    const { tenant } = this.#context.task;
    if (publish !== undefined) await this.#ports.seen?.stored(tenant, instance, action, { target, mnemonic });
  }

  /** The end of its stderr, or else of its stdout. */
  async #tail(result: ActionResult | undefined): Promise<string> {
    for (const digest of [result?.stderrDigest, result?.stdoutDigest]) {
      if (!digest || digest.sizeBytes === 0) continue;
      const offset = Math.max(0, digest.sizeBytes - tailLengthMax);
      const parts: Uint8Array[] = [];
      const name = `${digest.hash}/${digest.sizeBytes}`;
      for await (const part of this.#blobs.read(name, { offset })) parts.push(Uint8Array.from(part));
      return Buffer.concat(parts).toString().trim();
    }
    return "";
  }
}

type Done = Extract<RunOutcome, { kind: "done" }>;

const notMadeText = (paths: readonly string[]): string => `it did not make ${paths.slice(0, 5).join(", ")}`;

const metadataFor = (key: string, name: string, instanceName: string, jobId: string): BuildCall["metadata"] => {
  const known = { fn: "sha256", action: "", principal: "", nowMs: 0, unique: "" } as const;
  const { metadata } = askedFor({ key }, { name, instanceName }, known);
  return metadata && { ...metadata, toolInvocationId: jobId };
};
