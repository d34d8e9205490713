/**
 * Names of artifacts, caches and uploads: small documents that all nodes of a cluster share. The same calls as those of
 * the node's records, of which this is the part that the services use.
 */
export type NameId = { readonly tenant: string; readonly kind: string; readonly name: string };

export type NameRecord = {
  readonly tenant: string;
  readonly name: string;
  readonly version: number;
  readonly document: string;
  readonly createdAtMs: number;
  readonly changedAtMs: number;
};

export type NameLimits = { readonly countMax: number; readonly bytesMax: number };

export type NameQuery = {
  readonly tenant?: string | undefined;
  readonly kind: string;
  readonly prefix?: string | undefined;
  readonly order?: "name" | "newest" | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
};

export type NamePage = { readonly records: readonly NameRecord[]; readonly cursor: string | undefined };

export type Names = {
  create(
    id: NameId,
    document: string,
    limits?: NameLimits,
  ): Promise<{ readonly created: boolean; readonly record: NameRecord }>;
  read(id: NameId): Promise<NameRecord | undefined>;
  /** Undefined: there is none, or it has another version by now. */
  replace(id: NameId, version: number, document: string, limits?: NameLimits): Promise<NameRecord | undefined>;
  /** False: there is none, or it has another version by now. */
  remove(id: NameId, version: number): Promise<boolean>;
  list(query: NameQuery): Promise<NamePage>;
};

/** Every record below a prefix, page by page. */
export async function* everyName(names: Names, query: Omit<NameQuery, "limit" | "cursor">): AsyncGenerator<NameRecord> {
  let cursor: string | undefined;
  do {
    const page = await names.list({ ...query, limit: pageMax, ...(cursor !== undefined && { cursor }) });
    yield* page.records;
    cursor = page.cursor;
  } while (cursor !== undefined);
}

const pageMax = 500;

/** A document as its type: only this room writes records of its kinds. */
export const documentOf = <D>(record: NameRecord): D => JSON.parse(record.document) as D;
