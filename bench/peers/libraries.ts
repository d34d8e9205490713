import { bullmq } from "./bullmq.ts";
import { graphileWorker } from "./graphile.ts";
import { installPeers } from "./install.ts";
import type { Found } from "./peer.ts";
import { pgBoss, pgBossWays } from "./pg-boss.ts";

export type Library = { readonly name: string; readonly found: Found };

const finders: Readonly<Record<string, (freshDatabase: () => Promise<string>) => Promise<Found>>> = {
  "graphile-worker": async (freshDatabase) => ({ peer: await graphileWorker(await freshDatabase()) }),
  "pg-boss": async (freshDatabase) => ({ peer: await pgBoss(await freshDatabase(), pgBossWays.withResults) }),
  BullMQ: () => bullmq(),
  [pgBossWays.withoutResults.name]: async (freshDatabase) => ({
    peer: await pgBoss(await freshDatabase(), pgBossWays.withoutResults),
  }),
};

export const libraryNames: readonly string[] = Object.keys(finders);

/**
 * Ours stores a result of three digests per task: a mode that stores none is shown beside the one that does, but not
 * judged.
 */
export const isJudged = (name: string): boolean => name !== pgBossWays.withoutResults.name;

/** Identified by the name before the version. */
export const isOf = (library: string, peer: { readonly name: string }): boolean => peer.name.startsWith(`${library} `);

/** As part of a figure's name. */
export const figureKey = (library: string): string => library.toLowerCase().replaceAll(/[^a-z]+/gu, "_");

/** Every library, or why it is missing. Each gets a separate database on the same server. */
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
