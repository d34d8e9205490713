/**
 * What tenants' live output takes on other nodes. Each node says it among its facts, which all nodes read: only of
 * tenants that have a notable part of their limit, so that the facts stay small.
 */
import type { Clock } from "#base/clock.ts";

/** The fact under which a node says it. */
export const outputFact = "liveOutput";

export type NodeOutput = { readonly node: string; readonly alive: boolean; readonly said: string | number | undefined };

export type OutputElsewherePorts = {
  readonly clock: Pick<Clock, "after">;
  readonly tenantBytesMax: number;
  /** On this node. */
  readonly recent: () => ReadonlyMap<string, number>;
};

const tenantsMax = 20;
const notableShare = 1 / 64;
const everyMs = 3_000;

export class OutputElsewhere implements Disposable {
  readonly #ports: OutputElsewherePorts;
  #bytes: ReadonlyMap<string, number> = new Map();
  #cancel: () => void = () => {};
  #isOver = false;

  constructor(ports: OutputElsewherePorts) {
    this.#ports = ports;
  }

  /** By tenant. */
  of(tenant: string): number {
    return this.#bytes.get(tenant) ?? 0;
  }

  /** What this node says; undefined where nothing is notable. */
  get fact(): string | undefined {
    const { recent, tenantBytesMax } = this.#ports;
    const notable = [...recent()].filter(([, bytes]) => bytes >= tenantBytesMax * notableShare);
    if (notable.length === 0) return undefined;
    const most = notable.toSorted(([, a], [, b]) => b - a).slice(0, tenantsMax);
    return JSON.stringify(Object.fromEntries(most));
  }

  /** Looks now and then, but only while this node has something notable itself. */
  follow(nodes: () => Promise<readonly NodeOutput[]>, self: string): void {
    const look = async (): Promise<void> => {
      if (this.fact === undefined) this.#bytes = new Map();
      // Without an answer the last one stands: it is some seconds older.
      else
        this.#bytes = await nodes()
          .then((all) => sumOf(all, self))
          .catch(() => this.#bytes);
      if (!this.#isOver) this.#cancel = this.#ports.clock.after(everyMs, () => void look());
    };
    this.#cancel = this.#ports.clock.after(everyMs, () => void look());
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#cancel();
  }
}

function sumOf(all: readonly NodeOutput[], self: string): ReadonlyMap<string, number> {
  const sum = new Map<string, number>();
  for (const { node, alive, said } of all)
    if (alive && node !== self)
      for (const [tenant, bytes] of Object.entries(readFact(said)))
        if (typeof bytes === "number" && bytes > 0) sum.set(tenant, (sum.get(tenant) ?? 0) + bytes);
  return sum;
}

function readFact(said: NodeOutput["said"]): Record<string, unknown> {
  try {
    const found: unknown = typeof said === "string" ? JSON.parse(said) : undefined;
    return typeof found === "object" && found !== null ? (found as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
