/** Workflows that were disabled by hand: no event starts them until they are enabled again. */
import { createHash } from "node:crypto";
import { z } from "zod";
import type { Repository } from "#sources/book.ts";
import { recordsOf } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";
import { allPages } from "#doors/ci/runs/all-pages.ts";

const Disabled = z.object({ repository: z.string(), path: z.string(), by: z.string(), atMs: z.number() });
export type Disabled = z.output<typeof Disabled>;

const switchesMax = 1_000;

export class Switches {
  readonly #kept;

  constructor(records: Records) {
    this.#kept = recordsOf(records, {
      kind: "ci.disabled",
      schema: Disabled,
      limits: { countMax: switchesMax, bytesMax: 1024 * 1024 },
    });
  }

  async disable(tenant: string, off: Disabled): Promise<void> {
    await this.#kept.create(tenant, keyOf(off), off);
  }

  async enable(tenant: string, off: Pick<Disabled, "repository" | "path">): Promise<void> {
    await this.#kept.remove(tenant, keyOf(off));
  }

  /** The paths of its workflows that are disabled. */
  async disabled({ tenant, name }: Pick<Repository, "tenant" | "name">): Promise<ReadonlySet<string>> {
    const records = await allPages(this.#kept, tenant);
    const own = records.filter(({ value }) => value.repository.toLowerCase() === name.toLowerCase());
    return new Set(own.map(({ value }) => value.path));
  }
}

const keyOf = ({ repository, path }: Pick<Disabled, "repository" | "path">): string =>
  createHash("sha256")
    .update(JSON.stringify([repository.toLowerCase(), path]))
    .digest("hex")
    .slice(0, 40);
