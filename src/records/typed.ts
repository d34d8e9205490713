/** Records of one kind as values of one type: documents are JSON, checked by a schema when they are read. */
import type { z } from "zod";
import { Fault } from "#base/fault.ts";
import type { RecordLimits, RecordQuery, StoredRecord } from "./records.ts";
import type { Records, Watched } from "./watch.ts";

export type KindOfRecord<S extends z.ZodType> = {
  readonly kind: string;
  readonly schema: S;
  /** Left out: `recordLimitsDefault`. */
  readonly limits?: RecordLimits | undefined;
};

/** A record with its value in place of its document. */
export type Typed<T> = Omit<StoredRecord, "document"> & { readonly value: T };

export type TypedWatched<T> = Omit<Watched, "changed"> & { readonly changed: readonly Typed<T>[] };

export type TypedRecords<T> = ReturnType<typeof recordsOf<z.ZodType<T>>>;

export function recordsOf<S extends z.ZodType>(records: Records, { kind, schema, limits }: KindOfRecord<S>) {
  type T = z.output<S>;
  const typed = ({ document, ...record }: StoredRecord): Typed<T> => ({
    ...record,
    value: parsed(schema, kind, { ...record, document }),
  });
  const text = (value: z.input<S>): string => JSON.stringify(value);
  return {
    kind,
    async create(tenant: string, name: string, value: z.input<S>) {
      const { created, record } = await records.create({ tenant, kind, name }, text(value), limits);
      return { created, record: typed(record) };
    },
    /** All, or none where one of the names is taken: then what stands there is returned. */
    async createAll(tenant: string, given: readonly { readonly name: string; readonly value: z.input<S> }[]) {
      const documents = given.map(({ name, value }) => ({ name, document: text(value) }));
      const done = await records.createAll({ tenant, kind }, documents, limits);
      return done.created
        ? { created: true as const, records: done.records.map(typed) }
        : { created: false as const, record: typed(done.record) };
    },
    async read(tenant: string, name: string): Promise<Typed<T> | undefined> {
      const found = await records.read({ tenant, kind, name });
      return found && typed(found);
    },
    /** Undefined: there is none, or it has another version by now. */
    async replace(
      { tenant, name, version }: Pick<StoredRecord, "tenant" | "name" | "version">,
      value: z.input<S>,
    ): Promise<Typed<T> | undefined> {
      const replaced = await records.replace({ tenant, kind, name }, version, text(value), limits);
      return replaced && typed(replaced);
    },
    /** Changes it by what it is now, however often others change it meanwhile. Undefined: there is none. */
    async update(tenant: string, name: string, change: (value: T) => z.input<S>): Promise<Typed<T> | undefined> {
      for (let tries = 0; tries < triesMax; tries += 1) {
        const found = await this.read(tenant, name);
        if (!found) return undefined;
        const replaced = await this.replace(found, change(found.value));
        if (replaced) return replaced;
      }
      throw new Fault("unavailable", "change a record", { kind, name, why: "others change it all the time" });
    },
    /** Left out, `version` is whichever it has. */
    async remove(tenant: string, name: string, version?: number): Promise<boolean> {
      const id = { tenant, kind, name };
      if (version !== undefined) return await records.remove(id, version);
      for (let tries = 0; tries < triesMax; tries += 1) {
        const found = await records.read(id);
        if (!found) return false;
        if (await records.remove(id, found.version)) return true;
      }
      throw new Fault("unavailable", "remove a record", { kind, name, why: "others change it all the time" });
    },
    async list(query: Omit<RecordQuery, "kind">) {
      const { records: found, cursor } = await records.list({ ...query, kind });
      return { records: found.map(typed), cursor };
    },
    async *watch(query: { readonly tenant?: string | undefined }, signal: AbortSignal): AsyncIterable<TypedWatched<T>> {
      for await (const { changed, ...news } of records.watch({ ...query, kind }, signal))
        yield { ...news, changed: changed.map(typed) };
    },
  };
}

const triesMax = 20;

function parsed<S extends z.ZodType>(schema: S, kind: string, { tenant, name, document }: StoredRecord): z.output<S> {
  try {
    return schema.parse(JSON.parse(document));
  } catch (cause) {
    throw new Fault("corrupt", "read a record", { tenant, kind, name, why: "the document is not of its kind" }, cause);
  }
}
