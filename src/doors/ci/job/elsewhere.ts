/**
 * Jobs on a machine that is no node: the same runner, with what only a node knows asked for, and a folder that has the
 * same name on every machine, so that a job that loses its runner goes on at another.
 */
import { spawn } from "node:child_process";
import { arch, platform } from "node:os";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Fault, isFault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { StreamKey } from "#blobs/streams.ts";
import type { DoorElsewhere } from "#door/door.ts";
import type { PlaceElsewhere } from "#door/ports.ts";
import type { Granted } from "#shard/client/executor.ts";
import type { RunContext } from "#worker/runner.ts";
import { archNames, osNames } from "#doors/ci/local/machine.ts";
import { kinds, sandboxLabel, taskLabel } from "#doors/ci/plan.ts";
import { type JobAnswer, questions } from "./answers.ts";
import { linkedBox, linkOf } from "./box.ts";
import { sweepContainers } from "#doors/ci/containers/guard.ts";
import {
  containersLabel,
  findContainers,
  labelledFor,
  settingsFromText,
  sharedContainersLabel,
} from "#doors/ci/containers/host.ts";
import { cellRunner } from "./cell-runner.ts";
import { CompileCache } from "./compile-cache.ts";
import { readKept } from "./kept-steps.ts";
import type { KnownHere } from "./known.ts";

/** What `runs-on` may ask of this machine, besides what it is started with. */
export const machineLabels = (): readonly string[] =>
  ["self-hosted", osNames[platform()] ?? "linux", archNames[arch()] ?? "x64", arch()].map(
    (label) => `runner=${label.toLowerCase()}`,
  );

export async function ciElsewhere(place: PlaceElsewhere): Promise<DoorElsewhere> {
  const compiled = new CompileCache();
  const containers = await findContainers(settingsFromText(process.env["MILLRACE_CONTAINERS"]), process.env, () => {});
  if (containers) sweepContainers(containers, place);
  return {
    labels: [
      ...new Set([
        taskLabel,
        sandboxLabel,
        ...machineLabels(),
        ...(containers ? [containersLabel, sharedContainersLabel] : []),
      ]),
    ],
    runners: {
      [kinds.job]: async (context) => {
        const here = withLogs(place, context.task);
        return await cellRunner({
          node: place.name,
          place: here,
          compiled,
          known: (run) => knownFrom(place, run),
          box: (run) => linkedBox(here, run),
          containers: (task) => containers && labelledFor(containers, place, task),
          logBytesMax: place.printedBytesMax,
        })(context);
      },
    },
  };
}

/** The node is asked until it answers, or the claim is gone. */
async function asked(
  { ask }: PlaceElsewhere,
  question: string,
  body: unknown,
  { task, clock, signal }: Pick<RunContext, "task" | "clock" | "signal">,
): Promise<unknown> {
  for (let tries = 0; ; tries += 1)
    try {
      return await ask(task, question, body);
    } catch (error) {
      if (!isFault(error, "unavailable") || signal.aborted) throw error;
      await clock.sleep(Math.min(2_000, 100 * 2 ** tries), signal);
    }
}

async function knownFrom(place: PlaceElsewhere, context: RunContext): Promise<KnownHere> {
  const kept = context.task.checkpoint && readKept(context.task.checkpoint.payload);
  const isSame = kept?.seenAs === linkOf(context.task);
  const body = { server: place.server, isCommitWanted: !isSame, commits: kept?.actions ?? {} };
  const { actions, pack, ...known } = (await asked(place, questions.job, body, context)) as JobAnswer;
  return {
    ...known,
    bring: async (folder, { isCommitWanted }) => {
      // what an earlier attempt kept is gone: the job starts again, and needs its commit
      const again = isCommitWanted && isSame ? { ...body, isCommitWanted } : undefined;
      const digest = again ? ((await asked(place, questions.job, again, context)) as JobAnswer).pack : pack;
      if (digest !== undefined) await unpack(context.blobs, digest, folder);
      return actions;
    },
  };
}

async function unpack(blobs: BlobStore, digest: NonNullable<JobAnswer["pack"]>, folder: string): Promise<void> {
  const child = spawn("tar", ["-C", folder, "-x", "--no-same-owner", "--no-overwrite-dir"], {
    stdio: ["pipe", "ignore", "ignore"],
  });
  const ended = new Promise<number | null>((resolve, reject) => child.on("error", reject).on("close", resolve));
  const [code] = await Promise.all([ended, pipeline(Readable.from(blobs.read(digest)), child.stdin)]);
  if (code !== 0) throw new Fault("unavailable", "unpack a job's commit and actions", { program: "tar" });
}

/** Reads the log of an earlier attempt through the node. */
function withLogs(place: PlaceElsewhere, task: Granted): PlaceElsewhere {
  const { live } = place;
  if (!live) return place;
  async function* read({ token }: StreamKey, from: number): AsyncGenerator<Uint8Array> {
    for (let offset = from; ;) {
      const body = { token, offset, bytes: logBytesEach };
      const { base64 } = (await place.ask(task, questions.log, body)) as { readonly base64: string };
      const bytes = Buffer.from(base64, "base64");
      if (bytes.length === 0) return;
      offset += bytes.length;
      yield bytes;
    }
  }
  return { ...place, live: { ...live, streams: { ...live.streams, read } } };
}
const logBytesEach = 512 * 1024;
