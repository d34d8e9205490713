/** The checkpoint of a command: one file, which its next attempt finds in its folder. */
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { z } from "zod";
import { isFault } from "#base/fault.ts";
import type { Digest } from "#base/digest.ts";
import type { Checkpoint } from "#kernel/model/model.ts";
import type { RunContext } from "./runner.ts";

const Payload = z.object({ file: z.literal(1) });

export const writeFileCheckpoint = (digest: Digest): Checkpoint => ({
  payload: JSON.stringify({ file: 1 } satisfies z.input<typeof Payload>),
  digests: [digest],
});

function readFileCheckpoint({ payload, digests }: Checkpoint): Digest | undefined {
  try {
    return Payload.safeParse(JSON.parse(payload)).success ? digests[0] : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The variables that name the file with the last checkpoint; none where there is no checkpoint. If its bytes are lost,
 * an attempt without outside effects starts from the beginning; any other fails, because nothing must be done twice.
 */
export async function giveCheckpoint(
  { task: { checkpoint, effects }, blobs }: Pick<RunContext, "task" | "blobs">,
  folder: string,
): Promise<Readonly<Record<string, string>>> {
  const digest = checkpoint && readFileCheckpoint(checkpoint);
  if (digest === undefined) return {};
  const path = join(folder, ".millrace-checkpoint");
  try {
    await pipeline(blobs.read(digest), createWriteStream(path, { mode: 0o600, flags: "wx" }));
  } catch (error) {
    if (effects === "outside" || !isFault(error, "not-found")) throw error;
    return {};
  }
  return { MILLRACE_CHECKPOINT: path };
}
