/** What `agent status` shows: the running agent writes it into its folder, and a dead one cannot. */
import { rename, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { isAlive, statOf } from "#worker/process/launcher/proc.ts";
import { readIfThere } from "#doors/deploy/agent/durable-files.ts";

export const AgentStatus = z.object({
  pid: z.int(),
  /** A pid may be given again. */
  startedTicks: z.string(),
  machine: z.string(),
  region: z.string(),
  server: z.string(),
  /** The release that this agent is itself a version of; null for what was installed. */
  manifest: z.string().nullable(),
  installed: z.string(),
  startedAt: z.string(),
  writtenAt: z.string(),
  /** Since a node answered; null: none has yet. */
  answeredAgoMs: z.number().nullable(),
  memoryBytes: z.number(),
  freeBytes: z.number(),
  services: z.array(
    z.object({
      service: z.string(),
      region: z.string(),
      goalVersion: z.int(),
      release: z.string().nullable(),
      state: z.string(),
      running: z.string().nullable(),
      why: z.string(),
    }),
  ),
});
export type AgentStatus = z.output<typeof AgentStatus>;

const pathIn = (root: string): string => join(root, "status.json");

/** Not flushed: after a crash of the machine no agent runs that it could be about. */
export async function writeStatus(root: string, status: Omit<AgentStatus, "freeBytes">): Promise<void> {
  const { bavail, bsize } = await statfs(root);
  await writeFile(`${pathIn(root)}.new`, JSON.stringify({ ...status, freeBytes: bavail * bsize }), { mode: 0o600 });
  await rename(`${pathIn(root)}.new`, pathIn(root));
}

/** Undefined where no agent has run. */
export async function readStatus(root: string): Promise<(AgentStatus & { readonly isRunning: boolean }) | undefined> {
  const text = await readIfThere(pathIn(root));
  if (text === undefined) return undefined;
  const status = AgentStatus.parse(JSON.parse(text));
  const isRunning = isAlive(status.pid) && statOf(status.pid)?.startedTicks === status.startedTicks;
  return { ...status, isRunning };
}
