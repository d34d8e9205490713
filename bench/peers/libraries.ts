import { bullmq } from "./bullmq.ts";
import { graphileWorker } from "./graphile.ts";
import { installPeers } from "./install.ts";
import type { Found } from "./peer.ts";
import { pgBoss } from "./pg-boss.ts";

export type Library = { readonly name: string; readonly found: Found };

const finders: Readonly<Record<string, (freshDatabase: () => Promise<string>) => Promise<Found>>> = {
  "graphile-worker": async (freshDatabase) => ({ peer: await graphileWorker(await freshDatabase()) }),
  "pg-boss": async (freshDatabase) => ({ peer: await pgBoss(await freshDatabase()) }),
  BullMQ: () => bullmq(),
};

export const libraryNames: readonly string[] = Object.keys(finders);

/** Every library, or why it is not there. Each gets a database of its own on the same server. */
export async function libraries(freshDatabase: () => Promise<string>): Promise<readonly Library[]> {
  const found: Library[] = [];
  for (const name of libraryNames) found.push(await library(name, freshDatabase));
  return found;
}

export async function library(name: string, freshDatabase: () => Promise<string>): Promise<Library> {
  const failed = installPeers(["graphile-worker", "pg-boss", "bullmq", "ioredis"]);
  if (failed !== undefined) return { name, found: { missing: failed } };
  return { name, found: await (finders[name]?.(freshDatabase).catch(missing) ?? missing("no such library")) };
}

const missing = (error: unknown): Found => ({ missing: error instanceof Error ? error.message : String(error) });
