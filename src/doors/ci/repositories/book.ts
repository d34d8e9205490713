/** The repositories that tenants have registered, in what all nodes of the cluster share. */
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import type { ActionIndex, Entry } from "#blobs/action-index.ts";
import { sha256Digest } from "#blobs/sha256.ts";
import type { Store } from "#blobs/store.ts";

export type RepositoryRecord = {
  readonly tenant: string;
  /** `owner/name` */
  readonly name: string;
  /** A URL or a path that git can fetch from, as nodes see it. */
  readonly url: string;
};

export type RepositoryBook = {
  put(record: RepositoryRecord, by: string): Promise<void>;
  get(tenant: string, name: string): Promise<RepositoryRecord | undefined>;
  list(tenant: string): Promise<readonly RepositoryRecord[]>;
  remove(tenant: string, name: string): Promise<boolean>;
};

const space = "ci/repository";
const Notes = z.object({ url: z.string() });
const listMax = 10_000;

export function bookOf(index: ActionIndex, store: Store, clock: Clock): RepositoryBook {
  const recordOf = (tenant: string, name: string, { notes }: Entry): RepositoryRecord => {
    const read = Notes.safeParse(notes);
    if (!read.success) throw new Fault("corrupt", "read a repository's record", { name });
    return { tenant, name, url: read.data.url };
  };
  return {
    async put({ tenant, name, url }, by) {
      const bytes = Buffer.from(JSON.stringify({ name, url }));
      const digest = sha256Digest(bytes);
      await store.forTenant(tenant).blobs.write(digest, bytes);
      await index.put({ tenant, space, name }, { digest, principal: by, atMs: clock.wallMs(), notes: { url } });
    },
    async get(tenant, name) {
      const entry = await index.get({ tenant, space, name });
      return entry && recordOf(tenant, name, entry);
    },
    async list(tenant) {
      const found: RepositoryRecord[] = [];
      for (let after: string | undefined; ;) {
        const page = await index.list({
          tenant,
          spacePrefix: space,
          limit: 500,
          ...(after !== undefined && { after }),
        });
        for (const entry of page.entries) if (entry.space === space) found.push(recordOf(tenant, entry.name, entry));
        if (page.next === undefined || found.length >= listMax)
          return found.toSorted((a, b) => (a.name < b.name ? -1 : 1));
        after = page.next;
      }
    },
    remove: (tenant, name) => index.remove({ tenant, space, name }),
  };
}
