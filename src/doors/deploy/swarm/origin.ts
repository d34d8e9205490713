/** The node as the origin of a release: sends units of stripes, paced like any machine, within its limit. */
import { Fault } from "#base/fault.ts";
import type { Clock } from "#base/clock.ts";
import type { Store } from "#blobs/store.ts";
import { readWhole } from "#doors/deploy/fleet/whole.ts";
import { layoutOf, readUnit, type Layout } from "#doors/deploy/manifest/layout.ts";
import { parseManifest } from "#doors/deploy/manifest/manifest.ts";
import { packContent, parsePack } from "#doors/deploy/delta/pack.ts";
import type { Signed } from "#doors/deploy/signing/signing.ts";
import type { Spread } from "./agent-swarm.ts";
import { Bucket } from "#swarm/bucket.ts";
import { Have, shapeOf } from "#swarm/units.ts";
import {
  priorities,
  Uploads,
  type Priority,
  type UploadEffect,
  type UploadEvent,
  type UploadFlow,
} from "#swarm/uploads.ts";

export type OriginPorts = {
  readonly store: Store;
  readonly clock: Clock;
  readonly bytesPerSecond: number;
  /** Waits until so many bytes may go to a machine of that region. */
  readonly toRegion?: ((going: Going, bytes: number, signal: AbortSignal) => Promise<void>) | undefined;
};

export type Going = { readonly tenant: string; readonly region: string | undefined; readonly priority: Priority };

export type UnitRange = {
  readonly stripe: number;
  readonly from: number;
  readonly to: number;
  readonly priority: Priority;
  /** The machine's; undefined: it does not say. */
  readonly region?: string | undefined;
};

type Sending = { readonly units: number[]; wake: (() => void) | undefined };

const contentsMax = 20;
/** Whole blobs have a share of their own: when trackers fail, all machines ask for them at once. */
const wholeShare = 0.5;
const burstMs = 250;

export class Origin {
  readonly #ports: OriginPorts;
  readonly #uploads: Uploads<symbol>;
  readonly #layouts = new Map<string, Layout>();
  readonly #sending = new Map<symbol, Sending>();
  readonly #whole: Bucket;
  #cancelWake: (() => void) | undefined;
  #sentBytes = 0;

  constructor(ports: OriginPorts) {
    this.#ports = ports;
    const caps = { host: ports.bytesPerSecond, rack: Infinity, wan: Infinity };
    const limits = { flowsMax: 20_000, flowsPerPeerMax: 1, windowUnits: 2 };
    this.#uploads = new Uploads(caps, ports.clock.monotonicMs(), limits);
    this.#whole = new Bucket(ports.bytesPerSecond * wholeShare, burstMs, ports.clock.monotonicMs());
  }

  get sentBytes(): number {
    return this.#sentBytes;
  }

  /** A whole blob, at the pace that this node may send them at, however many machines ask. */
  async *blob(tenant: string, digest: string, signal: AbortSignal, region?: string): AsyncGenerator<Uint8Array> {
    const { store, clock, toRegion } = this.#ports;
    const going = { tenant, region, priority: priorities.release };
    for await (const part of store.forTenant(tenant).blobs.read(digest)) {
      for (let waitMs = 0; (waitMs = this.#whole.waitMs(clock.monotonicMs())) > 0;)
        await clock.sleep(Math.min(1_000, Math.max(1, waitMs)), signal);
      await toRegion?.(going, part.length, signal);
      this.#whole.take(part.length);
      this.#sentBytes += part.length;
      yield part;
    }
  }

  /** Each unit as its number, its length and its bytes. */
  async *units(
    tenant: string,
    content: string,
    { region, ...range }: UnitRange,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    const layout = await this.#layout(tenant, content);
    const peer = Symbol(content);
    const sending: Sending = { units: [], wake: undefined };
    this.#sending.set(peer, sending);
    let left = range.to - range.from;
    let flow: UploadFlow<symbol> | undefined;
    const subscribe = { ...range, peer, id: 0, content: keyOf(tenant, content), distance: "rack" } as const;
    const wake = (): void => sending.wake?.();
    signal.addEventListener("abort", wake, { once: true });
    try {
      flow = this.#step({ kind: "subscribe", ...subscribe }, peer);
      while (left > 0 && !signal.aborted) {
        const unit = sending.units.shift();
        if (unit === undefined) {
          await new Promise<void>((resolve) => (sending.wake = resolve));
          sending.wake = undefined;
          continue;
        }
        const bytes = await readUnit(layout, unit, this.#ports.store.forTenant(tenant).blobs);
        await this.#ports.toRegion?.({ tenant, region, priority: range.priority }, bytes.length, signal);
        const head = Buffer.allocUnsafe(8);
        head.writeUInt32BE(unit, 0);
        head.writeUInt32BE(bytes.length, 4);
        this.#sentBytes += bytes.length;
        left -= 1;
        yield head;
        yield bytes;
        flow ??= this.#flows.get(peer);
        if (flow) this.#step({ kind: "drained", flow }, peer);
      }
    } finally {
      signal.removeEventListener("abort", wake);
      this.#sending.delete(peer);
      this.#flows.delete(peer);
      this.#step({ kind: "left", peer }, peer);
    }
  }

  readonly #flows = new Map<symbol, UploadFlow<symbol>>();

  #step(event: UploadEvent<symbol>, of: symbol | undefined): UploadFlow<symbol> | undefined {
    const effects: UploadEffect<symbol>[] = [];
    const nowMs = this.#ports.clock.monotonicMs();
    this.#uploads.step(event, nowMs, effects);
    for (const effect of effects) {
      if (effect.kind === "send") {
        this.#flows.set(effect.flow.peer, effect.flow);
        const sending = this.#sending.get(effect.flow.peer);
        sending?.units.push(effect.unit);
        sending?.wake?.();
      } else if (effect.kind === "wake") {
        this.#cancelWake?.();
        this.#cancelWake = this.#ports.clock.after(Math.max(1, Math.ceil(effect.atMs - nowMs)), () => {
          this.#step({ kind: "wake" }, undefined);
        });
      } else if (effect.kind === "refused") throw new Fault("invalid", "send units", { why: effect.why });
    }
    return of && this.#flows.get(of);
  }

  async #layout(tenant: string, content: string): Promise<Layout> {
    const key = keyOf(tenant, content);
    const known = this.#layouts.get(key);
    if (known) return known;
    const { blobs } = this.#ports.store.forTenant(tenant);
    const manifest = spreadIn(await readWhole(blobs, content));
    if (!manifest.units) throw new Fault("not-found", "send units", { content, why: "it has no units" });
    const layout = layoutOf(manifest, manifest.units);
    const have = new Have(shapeOf(Math.max(1, layout.units)));
    for (let unit = 0; unit < layout.units; unit += 1) have.add(unit);
    const busy = new Set([...this.#flows.values()].map((flow) => flow.content));
    const idle = [...this.#layouts.keys()].filter((each) => !busy.has(each));
    for (const old of idle.slice(0, Math.max(0, this.#layouts.size + 1 - contentsMax))) {
      this.#layouts.delete(old);
      this.#step({ kind: "withdraw", content: old }, undefined);
    }
    this.#layouts.set(key, layout);
    this.#step({ kind: "serve", content: key, have, unitBytes: layout.unitBytes }, undefined);
    return layout;
  }
}

/** A signed manifest, or the description of a pack. */
function spreadIn(text: string): Spread {
  const { body } = JSON.parse(text) as Partial<Signed>;
  return typeof body === "string" ? parseManifest(body) : packContent(parsePack(text));
}

const keyOf = (tenant: string, content: string): string => JSON.stringify([tenant, content]);
