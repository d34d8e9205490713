import type { Typed } from "#records/typed.ts";

type Paged<T> = {
  list(query: {
    readonly tenant: string;
    readonly limit: number;
    readonly cursor: string | undefined;
  }): Promise<{ readonly records: readonly Typed<T>[]; readonly cursor: string | undefined }>;
};

/** Every record of a kind that a tenant has: kinds limit how many that are. */
export async function allPages<T>(kept: Paged<T>, tenant: string): Promise<readonly Typed<T>[]> {
  const all: Typed<T>[] = [];
  let cursor: string | undefined;
  do {
    const page = await kept.list({ tenant, limit: 500, cursor });
    all.push(...page.records);
    ({ cursor } = page);
  } while (cursor !== undefined);
  return all;
}
