/**
 * Delivers webhooks from the event feed. Every node runs it; the owner of the shard that a webhook's name leads to
 * takes it, and the record says until when, so that one node delivers at a time.
 *
 * WH1 Every event that a webhook wants is delivered at least once, in the feed's order, or is in its dead letters. The
 *     cursor moves only past events of which one of the two is true.
 * WH2 A delivery has one id, in every attempt and on every node.
 * WH3 A webhook holds up only itself: time, attempts, and deliveries at once, per node and per tenant, are limited.
 */
import type { Clock } from "#base/clock.ts";
import type { Random } from "#base/random.ts";
import type { Typed } from "#records/typed.ts";
import type { Vault } from "#vault/vault.ts";
import type { Feed } from "#feed/feed.ts";
import type { FeedReader } from "#feed/reader.ts";
import type { FeedItem } from "#kernel/read/feed.ts";
import type { Post } from "./post.ts";
import { deliveryId, requestOf, type Delivery, type Sending } from "./sign.ts";
import { deadLettersMax, filterOf, secretName, type Progress, type Webhook, type WebhookRecords } from "./webhook.ts";

export type Rendered = { readonly event: string; readonly body: object; readonly path?: string };

export type DelivererPorts = {
  readonly records: WebhookRecords;
  readonly vault: Pick<Vault, "read">;
  readonly feed: Pick<Feed, "open">;
  readonly clock: Clock;
  readonly random: Random;
  readonly node: string;
  readonly owns: (key: string) => boolean;
  /** What a webhook of this format is sent for an item; nothing: the item is passed over. */
  readonly render: (format: string, item: FeedItem) => Promise<readonly Rendered[]>;
  readonly sending: (format: string) => Sending;
  readonly post: Post;
  readonly log: (line: string) => void;
  readonly observe?: ((outcome: DeliveryOutcome) => void) | undefined;
  readonly settings?: Partial<DelivererSettings>;
};

export type DeliveryOutcome = "delivered" | "failed" | "dead";

export type DelivererSettings = {
  readonly attemptsMax: number;
  readonly backoffMs: number;
  readonly backoffMsMax: number;
  /** A webhook that took nothing for so long is disabled. */
  readonly disableAfterMs: number;
  readonly leaseMs: number;
  readonly atOnceMax: number;
  readonly tenantAtOnceMax: number;
  readonly lookMs: number;
};

export const delivererDefaults: DelivererSettings = {
  attemptsMax: 10,
  backoffMs: 1_000,
  backoffMsMax: 300_000,
  disableAfterMs: 3 * 24 * 3_600_000,
  leaseMs: 15_000,
  atOnceMax: 32,
  tenantAtOnceMax: 8,
  lookMs: 1_000,
};

/** Items that are delivered before the cursor is written: as many may come again after a crash. */
const togetherMax = 10;

type Run = { readonly abort: AbortController; readonly version: number; done: Promise<void> };
/** What the loop of one webhook knows: its progress as it was last written. */
type Held = { record: Typed<Progress>; writtenMono: number };

class Stopped extends Error {}

export class WebhookDeliverer implements AsyncDisposable {
  readonly #ports: DelivererPorts;
  readonly #settings: DelivererSettings;
  readonly #known = new Map<string, Typed<Webhook>>();
  readonly #running = new Map<string, Run>();
  readonly #sending = new Map<string, number>();
  readonly #ended = new AbortController();
  readonly #done: Promise<unknown>;

  constructor(ports: DelivererPorts) {
    this.#ports = ports;
    this.#settings = { ...delivererDefaults, ...ports.settings };
    this.#done = Promise.all([this.#watch(), this.#tick()]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort(new Error("the deliverer ends"));
    for (const { abort } of this.#running.values()) abort.abort();
    await Promise.all([this.#done, ...[...this.#running.values()].map(({ done }) => done)]);
  }

  async #watch(): Promise<void> {
    const { records, clock, log } = this.#ports;
    const { signal } = this.#ended;
    while (!signal.aborted) {
      try {
        for await (const { tenant, isReset, changed, removed } of records.hooks.watch({}, signal)) {
          if (isReset) for (const [key, hook] of this.#known) if (hook.tenant === tenant) this.#known.delete(key);
          for (const hook of changed) this.#known.set(keyOf(hook), hook);
          for (const name of removed) this.#known.delete(keyOf({ tenant, name }));
        }
      } catch (error) {
        if (!signal.aborted) log(`watch webhooks: ${messageOf(error)}`);
        await clock.sleep(this.#settings.lookMs, signal).catch(() => undefined);
      }
    }
  }

  async #tick(): Promise<void> {
    const { clock } = this.#ports;
    const { signal } = this.#ended;
    while (!signal.aborted) {
      this.#look();
      await clock.sleep(this.#settings.lookMs, signal).catch(() => undefined);
    }
  }

  #look(): void {
    for (const [key, run] of this.#running) {
      const hook = this.#known.get(key);
      if (!hook || hook.version !== run.version || !this.#ports.owns(key)) run.abort.abort();
    }
    for (const [key, hook] of this.#known) {
      if (this.#running.has(key) || hook.value.disabled || !this.#ports.owns(key)) continue;
      const run: Run = { abort: new AbortController(), version: hook.version, done: Promise.resolve() };
      this.#running.set(key, run);
      run.done = this.#run(hook, run.abort.signal)
        .catch((error: unknown) => {
          if (!(error instanceof Stopped) && !run.abort.signal.aborted)
            this.#ports.log(`webhook ${key}: ${messageOf(error)}`);
        })
        .finally(() => this.#running.delete(key));
    }
  }

  async #run(hook: Typed<Webhook>, signal: AbortSignal): Promise<void> {
    const held = await this.#take(hook);
    if (!held) return;
    using reader = await this.#ports.feed.open(
      filterOf(hook.tenant, hook.value),
      { cursor: held.record.value.cursor },
      { isOurs: true },
    );
    while (!signal.aborted) {
      const items = await reader.take(togetherMax, signal);
      for (const item of items) await this.#deliverItem(hook, held, item, signal);
      if (items.length > 0) await this.#write(held, { cursor: reader.cursor });
      else await this.#idle(held, reader, signal);
    }
    await this.#write(held, { untilMs: 0 }); // the next node need not wait
  }

  async #idle(held: Held, reader: FeedReader, signal: AbortSignal): Promise<void> {
    await reader.news(this.#settings.leaseMs / 3, signal);
    if (this.#isOld(held)) await this.#write(held, { cursor: reader.cursor });
  }

  /** The record says who delivers; undefined while another node does. */
  async #take(hook: Typed<Webhook>): Promise<Held | undefined> {
    const { records, clock, node } = this.#ports;
    const found = await records.progress.read(hook.tenant, hook.name);
    if (!found) return undefined; // its maker is about to write it
    if (found.value.node !== node && found.value.untilMs > clock.wallMs()) return undefined;
    const held = { record: found, writtenMono: 0 };
    await this.#write(held, {});
    return held;
  }

  #isOld({ writtenMono }: Held): boolean {
    return this.#ports.clock.monotonicMs() - writtenMono > this.#settings.leaseMs / 3;
  }

  /** Throws if another node has written meanwhile: this one stops. */
  async #write(held: Held, change: Partial<Progress>): Promise<void> {
    const { records, clock, node } = this.#ports;
    const untilMs = clock.wallMs() + this.#settings.leaseMs;
    const value = { ...held.record.value, node, untilMs, ...change };
    const written = await records.progress.replace(held.record, value);
    if (!written) throw new Stopped("another node delivers it");
    held.record = written;
    held.writtenMono = clock.monotonicMs();
  }

  async #deliverItem(hook: Typed<Webhook>, held: Held, item: FeedItem, signal: AbortSignal): Promise<void> {
    const rendered = await this.#ports.render(hook.value.format, item);
    for (const [n, { event, body, path }] of rendered.entries()) {
      const id = deliveryId(hook.value.id, item.id, n);
      await this.#deliver(hook, held, { id, event, body: JSON.stringify(body), path }, signal);
    }
  }

  async #deliver(hook: Typed<Webhook>, held: Held, delivery: Delivery, signal: AbortSignal): Promise<void> {
    const { clock, random, observe } = this.#ports;
    const { attemptsMax, backoffMs, backoffMsMax } = this.#settings;
    for (let attempt = 1; ; attempt += 1) {
      const { status, why } = await this.#send(hook, delivery, signal);
      signal.throwIfAborted();
      const atMs = clock.wallMs();
      const last = { atMs, status, event: delivery.event };
      if (why === "") {
        observe?.("delivered");
        const { failingSinceMs: _since, trouble: _trouble, ...value } = held.record.value;
        held.record = { ...held.record, value: { ...value, delivered: value.delivered + 1, last } };
        if (this.#isOld(held)) await this.#write(held, {});
        return;
      }
      observe?.("failed");
      const failingSinceMs = held.record.value.failingSinceMs ?? atMs;
      await this.#write(held, { failingSinceMs, last, trouble: { atMs, why } });
      if (atMs - failingSinceMs > this.#settings.disableAfterMs) await this.#disable(hook, failingSinceMs, why);
      const isFinal = this.#ports.sending(hook.value.format).isFinal?.(status) === true;
      if (attempt >= attemptsMax || isFinal) return await this.#bury(hook, held, delivery, attempt, why);
      const longMs = Math.min(backoffMs * 2 ** (attempt - 1), backoffMsMax);
      await this.#pause(held, longMs / 2 + random.fraction() * (longMs / 2), signal);
    }
  }

  async #pause(held: Held, ms: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#ports;
    const stepMs = this.#settings.leaseMs / 3;
    for (let leftMs = ms; leftMs > 0; leftMs -= stepMs) {
      await clock.sleep(Math.min(leftMs, stepMs), signal);
      if (this.#isOld(held)) await this.#write(held, {});
    }
  }

  async #send({ tenant, name, value }: Typed<Webhook>, delivery: Delivery, signal: AbortSignal) {
    const { vault, clock, post, sending } = this.#ports;
    await this.#slot(tenant, signal);
    try {
      const secret = await vault.read(tenant, secretName(name));
      if (!secret) return { status: 0, why: "its secret is gone: set the webhook again" };
      const { url, headers } = requestOf(value.url, delivery, secret, sending(value.format), clock.wallMs());
      return await post(url, headers, delivery.body, signal);
    } catch (error) {
      return { status: 0, why: messageOf(error) };
    } finally {
      this.#sending.set(tenant, (this.#sending.get(tenant) ?? 1) - 1);
      if (this.#sending.get(tenant) === 0) this.#sending.delete(tenant);
    }
  }

  async #slot(tenant: string, signal: AbortSignal): Promise<void> {
    const { atOnceMax, tenantAtOnceMax } = this.#settings;
    const all = (): number => [...this.#sending.values()].reduce((sum, each) => sum + each, 0);
    while (all() >= atOnceMax || (this.#sending.get(tenant) ?? 0) >= tenantAtOnceMax)
      await this.#ports.clock.sleep(20, signal);
    this.#sending.set(tenant, (this.#sending.get(tenant) ?? 0) + 1);
  }

  /** Given up, and kept for `redeliver`. The oldest ones make room. */
  async #bury(hook: Typed<Webhook>, held: Held, { id, event, body, path }: Delivery, attempts: number, why: string) {
    const { records, clock, observe } = this.#ports;
    const { tenant, name } = hook;
    const letter = {
      webhook: name,
      event,
      body,
      ...(path !== undefined && { path }),
      atMs: clock.wallMs(),
      attempts,
      why,
    };
    const { records: kept } = await records.dead.list({ tenant, limit: 1_000, order: "newest" });
    for (const old of kept.slice(deadLettersMax - 1)) await records.dead.remove(tenant, old.name);
    await records.dead.create(tenant, `${name}/${id}`, letter);
    await this.#write(held, { dead: held.record.value.dead + 1 });
    observe?.("dead");
  }

  async #disable({ tenant, name }: Typed<Webhook>, sinceMs: number, why: string): Promise<never> {
    const { records, clock } = this.#ports;
    const since = `nothing was taken since ${new Date(sinceMs).toISOString()}; last: ${why}`;
    await records.hooks.update(tenant, name, (was) => ({ ...was, disabled: { atMs: clock.wallMs(), why: since } }));
    throw new Stopped("it is disabled");
  }
}

export const keyOf = ({ tenant, name }: { readonly tenant: string; readonly name: string }): string =>
  `${tenant}/${name}`;

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
