import { bullmq } from "./bullmq.ts";
import { graphileWorker } from "./graphile.ts";
import { installPeers } from "./install.ts";
import type { Found } from "./peer.ts";
import { pgBoss } from "./pg-boss.ts";

export type Library = { readonly name: string; readonly found: Found };

/** Every library, or why it is not there. Each gets a database of its own on the same server. */
export async function libraries(freshDatabase: () => Promise<string>): Promise<readonly Library[]> {
  const failed = installPeers(["graphile-worker", "pg-boss", "bullmq", "ioredis"]);
  const tries: readonly { readonly name: string; readonly find: () => Promise<Found> }[] = [
    { name: "graphile-worker", find: async () => ({ peer: await graphileWorker(await freshDatabase()) }) },
    { name: "pg-boss", find: async () => ({ peer: await pgBoss(await freshDatabase()) }) },
    { name: "BullMQ", find: () => bullmq() },
  ];
  const found: Library[] = [];
  for (const { name, find } of tries)
    found.push({ name, found: failed === undefined ? await find().catch(missing) : { missing: failed } });
  return found;
}

const missing = (error: unknown): Found => ({ missing: error instanceof Error ? error.message : String(error) });
