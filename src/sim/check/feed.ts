/**
 * The event feed: every transition in the log reaches every reader that wants it, in the order of the log, after its
 * batch was durable, and the same wherever it was read (FD1, FH1, FR1). What must be there is taken from the log, not
 * from the code that makes the items.
 */
import type { Random } from "#base/random.ts";
import { decodeCursor } from "#feed/cursor.ts";
import type { Event, EventOf } from "#kernel/model/event.ts";
import type { FeedItem } from "#kernel/read/feed.ts";
import type { ShardModel } from "#sim/model/model.ts";
import type { FeedPage } from "#sim/world/desks.ts";
import type { Checker, Court } from "./court.ts";

/** An event that has an item at least, and what that says. */
type Owed = {
  readonly seq: number;
  readonly index: number;
  readonly tenant: string;
  readonly kind: FeedItem["kind"];
  readonly change: string;
};

type Place = { readonly seq: number; readonly index: number; readonly n: number };

/** What the log has made every reader expect, by shard, and what any reader has been given. */
export class FeedRecord {
  readonly owed: Owed[][] = [];
  readonly #said = new Map<string, string>();

  add(shard: number, owed: Owed): void {
    (this.owed[shard] ??= []).push(owed);
  }

  /** The same item is the same for everyone. */
  differs({ id, ...item }: FeedItem): string | undefined {
    const text = JSON.stringify(item);
    const before = this.#said.get(id);
    if (before === undefined) this.#said.set(id, text);
    return before === undefined || before === text ? undefined : `${id} was ${before}, and is ${text}`;
  }
}

export const feedIsOwed: Checker = {
  invariant: "FR1",
  promise: "every transition is in the feed",
  event(court, { model, seq, index }, event) {
    const kind = event.kind === "claimed" ? granted(event) : kinds[event.kind];
    if (kind === undefined) return undefined;
    court.afterEvent(() => {
      const tenant = tenantOf(model, event);
      if (tenant !== undefined) court.feed.add(model.shard, { seq, index, tenant, ...kind });
    });
    return undefined;
  },
};

/** Of one reader: how far it has got in each shard. */
export class FeedNotes {
  readonly #court: Court;
  readonly #name: string;
  readonly #tenant: string | undefined;
  #marks: Mark[] = [];
  #cursor: string | undefined;
  readonly #before: { readonly cursor: string; readonly marks: readonly Mark[] }[] = [];

  constructor(court: Court, name: string, tenant: string | undefined) {
    this.#court = court;
    this.#name = name;
    this.#tenant = tenant;
  }

  get cursor(): string | undefined {
    return this.#cursor;
  }

  /** Forgets the newest pages, as a client does that could not keep its cursor. */
  goBack(random: Random): boolean {
    if (this.#before.length === 0) return false;
    const { cursor, marks } = random.pick(this.#before);
    this.#cursor = cursor;
    this.#marks = marks.map((mark) => ({ ...mark }));
    return true;
  }

  take({ items, cursor }: FeedPage): void {
    const positions = decodeCursor(cursor, { clusterId, shards: this.#court.models.length });
    if (this.#cursor === undefined)
      this.#marks = positions.map(({ seq }, shard) => ({ last: before(seq + 1), next: this.#firstAfter(shard, seq) }));
    for (const item of items) this.#complain(this.#judge(item) ?? this.#court.feed.differs(item));
    for (const [shard, { seq }] of positions.entries())
      this.#complain(this.#passed(shard, before(seq + 1), "the cursor"));
    this.#cursor = cursor;
    this.#before.push({ cursor, marks: this.#marks.map((mark) => ({ ...mark })) });
    if (this.#before.length > keptMax) this.#before.shift();
  }

  /** What the log has for it and it was not given; undefined if there is nothing. */
  missing(): string | undefined {
    if (this.#cursor === undefined) return `${this.#name} never reached a node`;
    for (const shard of this.#court.models.keys()) {
      const missing = this.#next(shard);
      if (missing) return `${this.#name} was not given ${JSON.stringify(missing)} of shard ${shard}`;
    }
    return undefined;
  }

  #judge(item: FeedItem): string | undefined {
    const { id, tenant } = item;
    const [shard = 0, seq = 0, index = 0, n = 0] = id.split("-").map((part) => parseInt(part, 36));
    const mark = this.#marks[shard];
    if (!mark) return `${id} is of no shard`;
    if (this.#tenant !== undefined && tenant !== this.#tenant) return `${id} is of ${tenant}`;
    const place = { seq, index, n };
    if (!isBefore(mark.last, place)) return `${id} comes after ${JSON.stringify(mark.last)}`;
    const gap = this.#passed(shard, { seq, index, n: 0 }, id);
    if (gap !== undefined) return gap;
    mark.last = place;
    const owed = this.#next(shard);
    if (owed?.seq !== seq || owed.index !== index) return undefined;
    if (owed.kind !== item.kind || owed.change !== item.change) return undefined;
    if (owed.tenant !== tenant) return `${id} is of ${tenant}, its job of ${owed.tenant}`;
    mark.next += 1;
    return undefined;
  }

  /** Whether something was left out before this place. */
  #passed(shard: number, place: Place, by: string): string | undefined {
    const owed = this.#next(shard);
    return owed && isBefore({ ...owed, n: 0 }, place)
      ? `${by} leaves out ${JSON.stringify(owed)} of shard ${shard}`
      : undefined;
  }

  /** The next thing that it must be given. */
  #next(shard: number): Owed | undefined {
    const owed = this.#court.feed.owed[shard] ?? [];
    const mark = this.#marks[shard];
    if (!mark) return undefined;
    while (this.#tenant !== undefined && mark.next < owed.length && owed[mark.next]?.tenant !== this.#tenant)
      mark.next += 1;
    return owed[mark.next];
  }

  #firstAfter(shard: number, seq: number): number {
    const owed = this.#court.feed.owed[shard] ?? [];
    const found = owed.findIndex((one) => one.seq > seq);
    return found < 0 ? owed.length : found;
  }

  #complain(what: string | undefined): void {
    if (what !== undefined)
      this.#court.world.violate("FR1", `no gap, no repetition and no disorder: ${this.#name}: ${what}`);
  }
}

/** The page is leaving a node: everything in it is in the log. */
export function feedIsDurable(court: Court, { cursor, items }: FeedPage): void {
  const durable = (shard: number, seq: number): boolean => seq <= (court.models[shard]?.seq ?? 0);
  const bad = items.find(({ id }) => {
    const [shard = 0, seq = 0] = id.split("-").map((part) => parseInt(part, 36));
    return !durable(shard, seq);
  });
  if (bad) court.world.violate("FD1", `only durable batches are in the feed: ${JSON.stringify(bad)}`);
  const ahead = decodeCursor(cursor, { clusterId, shards: court.models.length }).findIndex(
    ({ seq }, i) => !durable(i, seq),
  );
  if (ahead >= 0) court.world.violate("FD1", `a cursor is ahead of the log of shard ${ahead}`);
}

/** `next` is an index into what is owed. */
type Mark = { last: Place; next: number };

export const clusterId = "sim";
const keptMax = 20;

const before = (seq: number): Place => ({ seq, index: -1, n: 0 });

const isBefore = (a: Place, b: Place): boolean =>
  a.seq !== b.seq ? a.seq < b.seq : a.index !== b.index ? a.index < b.index : a.n < b.n;

/** The item that each kind of event must have; kinds that are left out may have one. */
const kinds: { readonly [K in Event["kind"]]?: Pick<Owed, "kind" | "change"> } = {
  "job-submitted": { kind: "job", change: "submitted" },
  "job-cancelling": { kind: "job", change: "cancelling" },
  "job-ended": { kind: "job", change: "ended" },
  "stage-ready": { kind: "stage", change: "ready" },
  "stage-planned": { kind: "stage", change: "planned" },
  "stage-reopened": { kind: "stage", change: "reopened" },
  "stage-cancelling": { kind: "stage", change: "cancelling" },
  "stage-ended": { kind: "stage", change: "ended" },
  signalled: { kind: "stage", change: "signalled" },
  "rest-failed": { kind: "stage", change: "rest-failed" },
  started: { kind: "task", change: "started" },
  committed: { kind: "task", change: "committed" },
  checkpointed: { kind: "task", change: "checkpointed" },
  "attempt-ended": { kind: "task", change: "attempt-ended" },
  "plan-waiting": { kind: "task", change: "waiting" },
  "plan-closed": { kind: "task", change: "committed" },
  "plan-woken": { kind: "task", change: "ready" },
  requeued: { kind: "task", change: "ready" },
  reused: { kind: "task", change: "reused" },
  speculated: { kind: "task", change: "speculated" },
  "task-failed": { kind: "task", change: "failed" },
  invalidated: { kind: "task", change: "invalidated" },
  reported: { kind: "step", change: "reported" },
};

const granted = ({ started }: EventOf<"claimed">): Pick<Owed, "kind" | "change"> => ({
  kind: "task",
  change: started ? "started" : "claimed",
});

function tenantOf(model: ShardModel, event: Event): string | undefined {
  if ("job" in event && typeof event.job === "number") return model.jobs.get(event.job)?.tenant;
  const task = "task" in event ? event.task : "array" in event ? event.array : undefined;
  return task === undefined ? undefined : model.tasks.get(task)?.job.tenant;
}
