/** Names of artifacts, caches and uploads: records, which all nodes of a cluster share. */
import type { RecordQuery, RecordStore, StoredRecord } from "#records/records.ts";

export type Names = Pick<RecordStore, "create" | "read" | "replace" | "remove" | "list">;
export type NameRecord = StoredRecord;

/** Every record below a prefix, page by page. */
export async function* everyName(
  names: Names,
  query: Omit<RecordQuery, "limit" | "cursor">,
): AsyncGenerator<NameRecord> {
  let cursor: string | undefined;
  do {
    const page = await names.list({ ...query, limit: pageMax, cursor });
    yield* page.records;
    cursor = page.cursor;
  } while (cursor !== undefined);
}

const pageMax = 500;

/** A document as its type: only the services write records of their kinds. */
export const documentOf = <D>(record: NameRecord): D => JSON.parse(record.document) as D;
