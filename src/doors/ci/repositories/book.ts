/** The repositories that tenants have registered: records, which all nodes of the cluster share. */
import { z } from "zod";
import { recordsOf } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";

export type RepositoryRecord = {
  readonly tenant: string;
  /** `owner/name` */
  readonly name: string;
  /** A URL or a path that git can fetch from, as nodes see it. */
  readonly url: string;
};

export type RepositoryBook = {
  put(record: RepositoryRecord): Promise<void>;
  get(tenant: string, name: string): Promise<RepositoryRecord | undefined>;
  list(tenant: string): Promise<readonly RepositoryRecord[]>;
  remove(tenant: string, name: string): Promise<boolean>;
};

const kind = { kind: "ci.repository", schema: z.object({ url: z.string() }) };
const pageSize = 500;

export function bookOf(records: Records): RepositoryBook {
  const own = recordsOf(records, kind);
  return {
    async put({ tenant, name, url }) {
      const { created } = await own.create(tenant, name, { url });
      if (!created) await own.update(tenant, name, (value) => ({ ...value, url }));
    },
    async get(tenant, name) {
      const found = await own.read(tenant, name);
      return found && { tenant, name, url: found.value.url };
    },
    async list(tenant) {
      const all: RepositoryRecord[] = [];
      for (let cursor: string | undefined; ;) {
        const page = await own.list({ tenant, limit: pageSize, cursor });
        all.push(...page.records.map(({ name, value }) => ({ tenant, name, url: value.url })));
        if (page.cursor === undefined) return all;
        ({ cursor } = page);
      }
    },
    remove: (tenant, name) => own.remove(tenant, name),
  };
}
