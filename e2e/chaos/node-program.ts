/** How a node is started. */
import { join } from "node:path";
import type { Command } from "./processes.ts";

export type NodePlan = {
  readonly name: string;
  readonly address: string;
  /** Shared by all nodes. */
  readonly folder: string;
  readonly database: string;
  readonly shards: number;
  readonly leaseMs: number;
};

export function nodeCommand({ folder, ...plan }: NodePlan): Command {
  const settings = { ...plan, blobsFolder: join(folder, "blobs") };
  const args = [join(import.meta.dirname, "node-main.ts"), JSON.stringify(settings)];
  return { name: plan.name, args, logFile: join(folder, "logs", plan.name) };
}
