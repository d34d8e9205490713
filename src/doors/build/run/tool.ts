/**
 * An action with a persistent tool: inputs into the tool's folder, a request instead of a process, outputs out. A
 * misbehaving tool costs time, and nothing else: then the action is run as any other, and its result says so.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isFault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { RunOutcome } from "#worker/runner.ts";
import type { AttemptFolder } from "#worker/sandbox/folders/attempt-folder.ts";
import type { Ran } from "#worker/sandbox/command.ts";
import { messageOf } from "#worker/sandbox/ending.ts";
import { directoriesOf } from "#worker/stage/stage.ts";
import type { SymlinkRule, Trees } from "#worker/stage/tree.ts";
import { ToolBroke, type ToolOutcome } from "#worker/tool/tool-process.ts";
import type { LentTool, Tools } from "#worker/tool/tools.ts";
import type { ReadAction } from "#doors/build/execute/execution-inputs.ts";
import type { ActionSpec } from "#doors/build/plan.ts";
import type { Made } from "./answer.ts";
import { planTool, type NoTool, type ToolPlan } from "./tool-plan.ts";
import type { StageInto } from "#doors/build/run.ts";

/** Of the action's run. */
export type ToolRunPorts = {
  readonly tools: Tools;
  readonly trees: Trees;
  readonly blobs: BlobStore;
  readonly spec: ActionSpec;
  readonly tenant: string;
  readonly signal: AbortSignal;
  readonly symlinks: SymlinkRule;
  readonly sandbox: Ran["sandbox"];
  readonly printedBytesMax: number;
  readonly pidsMax: number;
  /** Stages the inputs. */
  stage(into: StageInto): Promise<void>;
  /** The claim is confirmed, and the command begins. */
  begin(): Promise<void>;
  collect(folder: AttemptFolder, ran: Ran, tool: ToolNote): Promise<Made>;
  done(made: Made): Promise<RunOutcome>;
};

/** What the result says about the tool. */
export type ToolNote =
  | { readonly asked: number }
  /** It was not used, or did not answer. */
  | { readonly without: string };

/** The action's outcome, or why the tool gave none. */
export async function runByTool({ command, inputRoot }: ReadAction, ports: ToolRunPorts): Promise<RunOutcome | NoTool> {
  const { spec, trees, blobs, tenant, tools, signal, symlinks, printedBytesMax, pidsMax } = ports;
  const { tool: demand, fn, network, memoryBytes, cpus } = spec;
  if (!demand) return { why: "it names none" };
  const tree = await trees.layOut(inputRoot, directoriesOf(blobs), fn, symlinks);
  const plan = await planTool(command, tree, { tenant, demand, network, memoryBytes, cpus }, blobs);
  if ("why" in plan) return plan;
  const { argv, env, key } = plan;
  const limits = { memoryBytes, cpus, pids: pidsMax };
  const { protocol } = demand;
  const tool = { argv, env, network, limits, protocol, outputBytesMax: printedBytesMax };
  const lent = await tools.borrow(key, tool, signal).catch(notToBeHad);
  signal.throwIfAborted();
  if (!lent) return { why: "all tools are busy" };
  if ("why" in lent) return lent;
  try {
    return await ask(lent, plan, ports);
  } catch (error) {
    if (!(error instanceof ToolBroke) || signal.aborted) {
      await tools.end(lent);
      throw error;
    }
    const why = String(error.facts["why"]);
    await tools.broke(lent, why);
    return { why };
  }
}

/** What a tool needs besides a sandbox may be missing here; the action does not need it. */
function notToBeHad(error: unknown): NoTool {
  if (!isFault(error, "unavailable")) throw error;
  return { why: error.message };
}

async function ask(lent: LentTool, { request }: ToolPlan, ports: ToolRunPorts): Promise<RunOutcome> {
  const { spec, tools, signal, printedBytesMax } = ports;
  const { process } = lent;
  const { attempt } = process;
  await process.still();
  await ports.stage(attempt);
  await ports.begin();
  const asked = await process.ask(request, spec.timeoutMs, signal);
  signal.throwIfAborted();
  const said = join(attempt.folder.path, "said");
  const text = textOf(asked, printedBytesMax);
  await writeFile(said, text.bytes, { mode: 0o600 });
  const ran = ranOf(asked, ports.sandbox, { bytes: text.bytes.length, leftOutBytes: text.leftOutBytes });
  const made = await ports.collect({ ...attempt.folder, stderr: said }, ran, { asked: process.requests });
  const [outcome] = await Promise.all([ports.done(made), process.isBroken ? undefined : process.rest()]);
  tools.giveBack(lent);
  return outcome;
}

type Text = { readonly bytes: Buffer; readonly leftOutBytes: number };

/** What it answered, and what it printed meanwhile; of too much, the beginning. */
function textOf(asked: ToolOutcome, bytesMax: number): Text {
  if (asked.kind === "timed-out") return { bytes: Buffer.alloc(0), leftOutBytes: 0 };
  const whole = Buffer.concat([Buffer.from(asked.answer.output), asked.printed]);
  return { bytes: whole.subarray(0, bytesMax), leftOutBytes: Math.max(0, whole.length - bytesMax) };
}

const nothing = { bytes: 0, leftOutBytes: 0 };

function ranOf(asked: ToolOutcome, sandbox: Ran["sandbox"], stderr: Ran["stderr"]): Ran {
  const { startedAtMs, ranMs } = asked;
  const end = { outOfMemory: false, stdout: nothing, stderr, startedAtMs, ranMs, readyMs: 0, sandbox };
  if (asked.kind === "answered") return { ...end, why: "exited", exitCode: asked.answer.exitCode, usage: asked.usage };
  const late = { ...end, why: "timed-out", exitCode: 137, usage: { cpuMs: 0 } } as const;
  const message = messageOf(late);
  return { ...late, ...(message !== undefined && { message }) };
}
