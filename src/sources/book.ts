/** Each tenant's list of repositories, kept as records, so that all nodes see the same list. */
import { z } from "zod";
import { recordsOf } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";
import { checkRepositoryName } from "./names.ts";

export type Repository = {
  readonly tenant: string;
  /** `owner/name` */
  readonly name: string;
  /** A URL or a path that git can fetch from, as nodes see it; undefined: it is kept on a node, which serves it. */
  readonly url?: string | undefined;
  /** The node that keeps it. */
  readonly node?: string | undefined;
};

const Document = z.object({ name: z.string(), url: z.string().optional(), node: z.string().optional() });

export type RepositoryBook = {
  /** Replaces what was registered under this name. */
  put(repository: Repository): Promise<void>;
  get(tenant: string, name: string): Promise<Repository | undefined>;
  list(tenant: string | undefined): Promise<readonly Repository[]>;
  remove(tenant: string, name: string): Promise<boolean>;
};

export function bookOf(records: Records): RepositoryBook {
  const kept = recordsOf(records, { kind: "sources.repository", schema: Document });
  // Names differ in more than the case of their letters, as on the file systems that they are checked out to.
  const keyOf = (name: string): string => name.toLowerCase();
  return {
    async put({ tenant, name, url, node }) {
      checkRepositoryName(name);
      const { created } = await kept.create(tenant, keyOf(name), { name, url, node });
      if (!created) await kept.update(tenant, keyOf(name), () => ({ name, url, node }));
    },
    async get(tenant, name) {
      const found = await kept.read(tenant, keyOf(name));
      return found && { tenant, ...found.value };
    },
    async list(tenant) {
      const all: Repository[] = [];
      let cursor: string | undefined;
      do {
        const page = await kept.list({ tenant, limit: 500, cursor });
        all.push(...page.records.map((record) => ({ tenant: record.tenant, ...record.value })));
        cursor = page.cursor;
      } while (cursor !== undefined);
      return all;
    },
    remove: (tenant, name) => kept.remove(tenant, keyOf(name)),
  };
}
