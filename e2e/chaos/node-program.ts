/** A node as a user would start it: the program itself, with a configuration. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "./processes.ts";

export type NodePlan = {
  readonly name: string;
  readonly address: string;
  /** Holds what all nodes share, and a folder for each. */
  readonly folder: string;
  readonly database: string;
  readonly shards: number;
  readonly leaseMs: number;
  /** Tasks that the node runs itself; 0 for none. */
  readonly slots: number;
};

const program = join(import.meta.dirname, "..", "..", "src", "cli", "main.ts");

export function nodeCommand({ name, address, folder, database, shards, leaseMs, slots }: NodePlan): Command {
  const data = join(folder, name);
  mkdirSync(data, { recursive: true });
  const config = join(data, "config.yaml");
  const settings = {
    cluster: { name: "chaos", shards, ownerLease: `${leaseMs}ms` },
    node: { name, data, listen: [address], stopWithin: "5s" },
    edge: { listen: [] },
    journal: { kind: "postgres", url: database },
    blobs: { kind: "directory", directory: join(folder, "blobs") },
    worker: { enabled: slots > 0, slots: Math.max(1, slots) },
  };
  writeFileSync(config, JSON.stringify(settings));
  const env = { XDG_CACHE_HOME: join(folder, "cache") };
  return { name, args: [program, "up", "--config", config], env, logFile: join(folder, "logs", name) };
}
