/** The goals of all services, in the store that every node reaches: the newest entry by name, older ones by digest. */
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import type { ActionIndex, Entry } from "#blobs/action-index.ts";
import { sha256Digest } from "#blobs/sha256.ts";
import type { Store } from "#blobs/store.ts";
import { certificateText, type Certified } from "#doors/deploy/goal/certificate.ts";
import { Goal, nextGoal, type GoalChange, type SignedGoal } from "#doors/deploy/goal/goal.ts";
import { livePins } from "#doors/deploy/goal/pins.ts";
import type { Signed, Signer } from "#doors/deploy/signing/signing.ts";
import { readWhole } from "./whole.ts";

export type At = { readonly tenant: string; readonly service: string; readonly region: string };
export type Head = SignedGoal & { readonly entry: Entry };

const keptMs = 30 * 24 * 3_600_000;
const goalSpace = (region: string): string => `deploy/goal/${region}`;
const stableSpace = (region: string): string => `deploy/stable/${region}`;

export type GoalPorts = {
  readonly index: ActionIndex;
  readonly store: Store;
  readonly signer: () => Promise<Signer>;
  readonly clock: Clock;
};

export class GoalStore {
  readonly #ports: GoalPorts;

  constructor(ports: GoalPorts) {
    this.#ports = ports;
  }

  async head({ tenant, service, region }: At): Promise<Head | undefined> {
    const entry = await this.#ports.index.get({ tenant, space: goalSpace(region), name: service });
    return entry && (await this.#read(tenant, entry));
  }

  /** Every service's newest goal in a region. */
  async heads(tenant: string, region: string): Promise<readonly Head[]> {
    const found: Head[] = [];
    for (let after: string | undefined; ;) {
      const filter = { tenant, spacePrefix: goalSpace(region), limit: 500, ...(after !== undefined && { after }) };
      const page = await this.#ports.index.list(filter);
      for (const entry of page.entries)
        if (entry.space === goalSpace(region)) found.push(await this.#read(tenant, entry));
      if (page.next === undefined) return found;
      after = page.next;
    }
  }

  /** Appends a change to the chain, unless the chain has moved on since `last` was read. */
  async append(at: At, last: Head | undefined, change: GoalChange): Promise<Head> {
    const { signer, index, clock } = this.#ports;
    // Pins stay from goal to goal until their time is over (PN1).
    const pins = livePins(change.pins ?? last?.goal.pins, clock.wallMs());
    const { pins: _, ...rest } = change;
    const next = nextGoal(at, last, { ...rest, ...(pins.length > 0 && { pins: [...pins] }) }, await signer());
    const digest = await this.write(at.tenant, JSON.stringify(next.signed));
    const entry = { digest, principal: "deploy", atMs: clock.wallMs() };
    const key = { tenant: at.tenant, space: goalSpace(at.region), name: at.service };
    const written = await index.put(key, entry, last?.entry.version ?? 0);
    if (written.kind === "conflict")
      throw new Fault("stale", "write goal", {
        service: at.service,
        region: at.region,
        why: "another release wrote a newer one",
      });
    return { ...next, entry: { ...entry, version: written.version } };
  }

  /** The newest goal again, but for some of it. */
  async amend(at: At, head: Head, change: Partial<Pick<GoalChange, "halted" | "pins" | "stable">>): Promise<Head> {
    const { format: _f, service: _s, region: _r, version: _v, previous: _p, ...same } = head.goal;
    return await this.append(at, head, { ...same, ...change });
  }

  /** Signs that a wave was found healthy (goal/certificate.ts). */
  async certify(certified: Certified): Promise<Signed> {
    return (await this.#ports.signer()).sign("certificate", certificateText(certified));
  }

  /** The manifest that ended well last, with the one before it. */
  async stable({ tenant, service, region }: At): Promise<{ manifest: string; before: string | null } | undefined> {
    const entry = await this.#ports.index.get({ tenant, space: stableSpace(region), name: service });
    return entry && { manifest: entry.digest, before: entry.notes?.["before"] ?? null };
  }

  async setStable({ tenant, service, region }: At, manifest: string): Promise<void> {
    const known = await this.stable({ tenant, service, region });
    if (known?.manifest === manifest) return;
    const notes: Readonly<Record<string, string>> = known ? { before: known.manifest } : {};
    const entry = { digest: manifest, principal: "deploy", atMs: this.#ports.clock.wallMs(), notes };
    await this.#ports.index.put({ tenant, space: stableSpace(region), name: service }, entry);
  }

  /** Stores a document and keeps it for a month. */
  async write(tenant: string, text: string): Promise<string> {
    const bytes = Buffer.from(text);
    const digest = sha256Digest(bytes);
    const { blobs } = this.#ports.store.forTenant(tenant);
    await blobs.write(digest, bytes);
    await blobs.pin([digest], keptMs);
    return digest;
  }

  async #read(tenant: string, entry: Entry): Promise<Head> {
    const signed = JSON.parse(await readWhole(this.#ports.store.forTenant(tenant).blobs, entry.digest)) as Signed;
    return { goal: Goal.parse(JSON.parse(signed.body)), signed, entry };
  }
}
