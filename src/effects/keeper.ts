/**
 * Removes effects of jobs that are in memory and history no longer: neither the job itself, nor one that repeats it and
 * shares its ledger. Until then a re-run could ask. Shared effects are facts of their tenant, and stay until a person
 * removes them.
 *
 * EF4 An effect stays for as long as any job can ask for it.
 */
import type { Clock } from "#base/clock.ts";
import type { Effects } from "./effects.ts";

export type EffectsKeeperPorts = {
  readonly effects: Pick<Effects, "list" | "remove">;
  /** Whether the job, or one that repeats it, can still be asked for; throws where that cannot be known now. */
  readonly isRemembered: (tenant: string, job: string) => Promise<boolean>;
  /** One node of a cluster does it. */
  readonly isMine: () => boolean;
  readonly clock: Clock;
  readonly log: (line: string) => void;
};

/** Younger ones are of jobs that history may not know yet. */
const youngMs = 24 * 3_600_000;
const everyMs = 6 * 3_600_000;
const pageMax = 500;
const prefix = "job/";

export class EffectsKeeper implements AsyncDisposable {
  readonly #ports: EffectsKeeperPorts;
  readonly #ended = new AbortController();
  readonly #done: Promise<void>;

  constructor(ports: EffectsKeeperPorts, firstMs = 10 * 60_000) {
    this.#ports = ports;
    this.#done = this.#run(firstMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort(new Error("the keeper ends"));
    await this.#done;
  }

  async #run(firstMs: number): Promise<void> {
    const { clock, isMine, log } = this.#ports;
    const { signal } = this.#ended;
    for (let waitMs = firstMs; !signal.aborted; waitMs = everyMs) {
      await clock.sleep(waitMs, signal).catch(() => undefined);
      if (signal.aborted) return;
      if (!isMine()) continue;
      await this.sweep().catch((error: unknown) => {
        if (!signal.aborted) log(`remove old effects: ${error instanceof Error ? error.message : String(error)}`);
      });
    }
  }

  /** Once through all; returns how many were removed. */
  async sweep(): Promise<number> {
    const { effects, clock } = this.#ports;
    let removed = 0;
    let cursor: string | undefined;
    let last: { readonly ledger: string; readonly isRemembered: boolean } | undefined;
    do {
      const page = await effects.list({ prefix, limit: pageMax, cursor });
      for (const one of page.records) {
        const [, job = ""] = one.name.split("/", 2);
        if (this.#ended.signal.aborted) return removed;
        if (one.value.atMs > clock.wallMs() - youngMs) continue;
        const ledger = `${one.tenant} ${job}`;
        if (last?.ledger !== ledger) last = { ledger, isRemembered: await this.#isRemembered(one.tenant, job) };
        if (!last.isRemembered && (await effects.remove(one.tenant, one.name, one.version))) removed += 1;
      }
      ({ cursor } = page);
    } while (cursor !== undefined);
    return removed;
  }

  /** In doubt it is. */
  async #isRemembered(tenant: string, job: string): Promise<boolean> {
    return await this.#ports.isRemembered(tenant, job).catch(() => true);
  }
}
