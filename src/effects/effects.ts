/** The ledger as records of a tenant: one record a key, changed only by `step` and compare-and-set. */
import { z } from "zod";
import { Fault } from "#base/fault.ts";
import type { Clock } from "#base/clock.ts";
import { recordsOf, type Typed } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";
import { type Answer, type Command, type Entry, type Holder, step } from "./ledger.ts";

export const effectResultCharactersMax = 4_096;
export const effectNameCharactersMax = 200;

const holder = z.object({ job: z.string(), task: z.string(), token: z.number() });

const EntryDocument: z.ZodType<Entry> = z.object({
  phase: z.enum(["begun", "done", "free"]),
  holder,
  atMs: z.number(),
  begins: z.number(),
  isUnknown: z.boolean(),
  needsDecision: z.boolean(),
  result: z.string().optional(),
  decidedBy: z.string().optional(),
});

/** The tag by which a job that repeats another shares its ledger. */
export const effectsTag = "effects";

const changesMax = 20;

export type EffectsPorts = {
  readonly records: Records;
  readonly clock: Pick<Clock, "wallMs">;
  /** Whether the holder's claim still stands. */
  readonly isLive: (tenant: string, holder: Holder) => Promise<boolean>;
};

/** A begin that is not told yet whether the entry's holder is live: that is asked here. */
export type EffectCommand = Exclude<Command, { kind: "begin" }> | { readonly kind: "begin"; readonly holder: Holder };

export class Effects {
  readonly #ports: EffectsPorts;
  readonly #entries;

  constructor(ports: EffectsPorts) {
    this.#ports = ports;
    this.#entries = recordsOf(ports.records, {
      kind: "effect",
      schema: EntryDocument,
      limits: { countMax: 100_000, bytesMax: 256 << 20 },
    });
  }

  async find(tenant: string, key: string): Promise<Typed<Entry> | undefined> {
    return await this.#entries.read(tenant, key);
  }

  /** The next who begins it is told to go. Left out, `version` is the one that it has. */
  async remove(tenant: string, key: string, version?: number): Promise<boolean> {
    return await this.#entries.remove(tenant, key, version);
  }

  /** Without a tenant: of all. */
  async list(query: {
    readonly tenant?: string;
    readonly prefix?: string | undefined;
    readonly limit: number;
    readonly cursor?: string | undefined;
  }) {
    return await this.#entries.list(query);
  }

  /** Reads, decides and writes under the version that was read, until no other change came in between. */
  async change(tenant: string, key: string, command: EffectCommand): Promise<Answer> {
    for (let tries = 0; tries < changesMax; tries += 1) {
      const found = await this.#entries.read(tenant, key);
      const { entry, answer } = step(found?.value, await this.#told(tenant, command, found?.value), this.#nowMs());
      if (!entry) return answer;
      if (found ? await this.#entries.replace(found, entry) : (await this.#entries.create(tenant, key, entry)).created)
        return answer;
    }
    throw new Fault("unavailable", "change an effect", { key, why: "others change it all the time" });
  }

  async #told(tenant: string, command: EffectCommand, entry: Entry | undefined): Promise<Command> {
    if (command.kind !== "begin") return command;
    const isHolderLive = entry?.phase === "begun" && (await this.#ports.isLive(tenant, entry.holder));
    return { ...command, isHolderLive };
  }

  #nowMs(): number {
    return this.#ports.clock.wallMs();
  }
}
