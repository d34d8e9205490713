/**
 * Fetches what a command needs from outside before it can be decided: pins on the blobs that it names (K3) and the
 * journal's entry for its request key (K1). Requests of the same turn of the event loop share one call. Values for
 * these fields that a caller sent are discarded.
 */
import type { Clock } from "#base/clock.ts";
import { isDigest, type Digest } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Command, CommandOf, Submit } from "#kernel/model/command.ts";
import type { Checkpoint, Evidence, Result, Reuse } from "#kernel/model/model.ts";
import { requestKeyOf } from "#kernel/apply/job.ts";
import { decideSubmit } from "#kernel/decide/submit.ts";
import { visibleTask } from "#kernel/read/visible.ts";
import type { Journal, RequestKey } from "#journal/journal.ts";
import type { HostedShard } from "./shard.ts";
import { type AnswerHandler, later, TurnBatch } from "./turn-batch.ts";
import type { LargeTexts } from "#shard/texts/large-texts.ts";
import type { TextCommand } from "#shard/texts/text-fields.ts";

/**
 * Where to look for and pin the blobs that a tenant's results name. `whose` "tenant": only among the tenant's own blobs
 * (B5), for callers narrowed to that tenant, who could otherwise probe what others have. "any": also among blobs that
 * nodes or other tenants made.
 */
/** `door`: of the job whose results are pinned; the same store for the same tenant, `whose` and door. */
export type PinsOf = (tenant: string, whose: "tenant" | "any", door: string) => Pick<BlobStore, "pin">;

export type PreparePorts = {
  /** Keeps long texts in the store; left out, they stay in memory. */
  readonly texts?: LargeTexts | undefined;
  readonly clock: Clock;
  readonly pins: PinsOf;
  readonly journal: Pick<Journal, "findKeys">;
  /** How long the blobs named by a commit are pinned at first. */
  readonly pinMs: number;
};

const noEvidence: Evidence = { digests: [], pinnedForMs: 0 };

/** A command under a claim that names blobs: what an attempt has made, in the end or so far. */
export type BlobCommand = CommandOf<"commit" | "fail" | "checkpoint" | "release">;

export const namesBlobs = (command: Command): command is BlobCommand =>
  command.kind === "commit" ||
  command.kind === "checkpoint" ||
  (command.kind === "fail" && command.result !== undefined) ||
  (command.kind === "release" && command.checkpoint !== undefined);

export class Preparer {
  readonly #pins = new WeakMap<Pick<BlobStore, "pin">, TurnBatch<readonly Digest[], Evidence>>();
  readonly #keys = new Map<HostedShard, TurnBatch<string, RequestKey | undefined>>();
  readonly #ports: PreparePorts;

  constructor(ports: PreparePorts) {
    this.#ports = ports;
  }

  /**
   * Passes on the command with the host's own evidence: at once if nothing is needed from outside, else later. A
   * callback, because a promise or two for each of a hundred thousand commits a second would use up a core.
   */
  prepare(shard: HostedShard, given: BlobCommand | TextCommand, on: Prepared): void {
    if (namesBlobs(given)) return this.#pinned(shard, given, on);
    const command = unkept(given);
    if (command.kind === "submit") return this.#submit(shard, command, on);
    const kept = this.#kept(command);
    if (!(kept instanceof Promise)) return on.ready(kept);
    kept.then(
      (ready) => on.ready(ready),
      (error: unknown) => on.failed(error),
    );
  }

  forget(shard: HostedShard): void {
    this.#keys.delete(shard);
  }

  #pinned(shard: HostedShard, command: BlobCommand, on: Prepared): void {
    const digests = digestsOf(
      command.kind === "commit" || command.kind === "fail" ? command.result : command.checkpoint,
    );
    if (digests.length === 0 || !canBePinned(digests, shard)) return on.ready({ ...command, evidence: noEvidence });
    // A task that does not exist or belongs to another tenant is refused in any case: pin nothing for it.
    const job = visibleTask(shard.state, command)?.stage.job;
    if (!job) return on.ready({ ...command, evidence: noEvidence });
    const whose = command.tenant === undefined ? "any" : "tenant";
    this.#pinsOf(job.tenant.name, whose, job.door).ask(digests, new EvidentCommand(command, on));
  }

  #pinsOf(tenant: string, whose: "tenant" | "any", door: string): TurnBatch<readonly Digest[], Evidence> {
    const blobs = this.#ports.pins(tenant, whose, door);
    let turn = this.#pins.get(blobs);
    if (!turn) this.#pins.set(blobs, (turn = new TurnBatch((asked) => this.#pin(blobs, asked))));
    return turn;
  }

  #submit(shard: HostedShard, command: Submit, on: Prepared): void {
    const submit = unvouched(command);
    const results = Array.isArray(submit.reuse) ? submit.reuse.map((one: Reuse) => digestsOf(one?.result)) : [];
    const digests = results.every((each) => canBePinned(each, shard)) ? results.flat() : [];
    if (digests.length === 0 && !isElsewhere(shard, submit) && this.#isAnswered(shard, submit)) return on.ready(submit);
    void this.#submitLater(shard, submit, digests, on);
  }

  /**
   * Whether the submission leads to nothing new: then nothing is stored for it, because a caller whose submissions are
   * refused could fill the store. It is decided in the same turn of the event loop; if it leads to something after all,
   * its texts stay inline.
   */
  #isAnswered(shard: HostedShard, submit: Submit): boolean {
    const { texts } = this.#ports;
    if (!texts?.hasLarge(submit)) return true;
    try {
      const decision = decideSubmit(shard.state, texts.referring(submit), shard.nowMs());
      return !decision.ok || decision.events[0]?.kind !== "job-submitted";
    } catch {
      return true; // the kernel refuses it (K12)
    }
  }

  #kept<C extends TextCommand>(command: C): C | Promise<C> {
    const { texts } = this.#ports;
    if (!texts?.hasLarge(command)) return command;
    return texts.keep(command, command.kind === "submit" ? command.deadlineMs : undefined) as Promise<C>;
  }

  async #submitLater(shard: HostedShard, submit: Submit, digests: readonly Digest[], on: Prepared): Promise<void> {
    const { clock } = this.#ports;
    const { tenant, door } = submit;
    let command = submit;
    try {
      const pinned = digests.length > 0 ? await later(this.#pinsOf(tenant, "tenant", door), digests) : undefined;
      const pinnedMono = clock.monotonicMs();
      let keyFound = await this.#keyFound(shard, submit);
      const kept = keyFound ? submit : this.#kept(submit);
      if (kept instanceof Promise) {
        command = await kept;
        keyFound = await this.#keyFound(shard, submit);
      }
      if (keyFound) command = { ...command, keyFound };
      if (pinned) command = { ...command, reuseEvidence: olderBy(pinned, clock.monotonicMs() - pinnedMono) };
    } catch (error) {
      return on.failed(error);
    }
    on.ready(command);
  }

  /**
   * The job that the journal has for the key, if memory has let go of the key. Nothing may be waited for between this
   * and the decision: meanwhile a repeated submission could bind the key, and memory let go of it (K1).
   */
  async #keyFound(shard: HostedShard, submit: Submit): Promise<Submit["keyFound"]> {
    const { tenant, door, requestKey } = submit;
    if (requestKey === undefined) return undefined;
    const key = journalKeyOf(requestKeyOf(tenant, door, requestKey));
    // A key may be bound and dropped again while the journal is being read: then it is read again.
    for (let asked: string | undefined; isElsewhere(shard, submit) && asked !== lettingGo(shard);) {
      asked = lettingGo(shard);
      // A key that memory bound and dropped is not in the journal before its batch is.
      const found = pendingKey(shard, key) ?? (await later(this.#keysOf(shard), key));
      if (found) return { job: found.job, payloadHash: found.payloadHash };
    }
    return undefined;
  }

  #keysOf(shard: HostedShard): TurnBatch<string, RequestKey | undefined> {
    let turn = this.#keys.get(shard);
    if (!turn) {
      turn = new TurnBatch(async (keys) => {
        const found = await this.#ports.journal.findKeys(shard.shard, [...new Set(keys)], shard.nowMs());
        const byKey = new Map(found.map((row) => [row.key, row]));
        return keys.map((key) => byKey.get(key));
      });
      this.#keys.set(shard, turn);
    }
    return turn;
  }

  async #pin(blobs: Pick<BlobStore, "pin">, asked: readonly (readonly Digest[])[]): Promise<readonly Evidence[]> {
    const all = new Set<Digest>();
    for (const digests of asked) for (const digest of digests) all.add(digest);
    const together = await this.#pinOnce(blobs, [...all]);
    if ("pinnedForMs" in together) return asked.map((digests) => ({ digests, pinnedForMs: together.pinnedForMs }));
    const missing = new Set(together.missing);
    return Promise.all(
      asked.map(async (digests): Promise<Evidence> => {
        // Refused in any case; evidence without the missing blob makes the refusal name it.
        if (digests.some((digest) => missing.has(digest)))
          return { digests: digests.filter((digest) => !missing.has(digest)), pinnedForMs: this.#ports.pinMs };
        const pin = await this.#pinOnce(blobs, digests);
        if ("pinnedForMs" in pin) return { digests, pinnedForMs: pin.pinnedForMs };
        const gone = new Set(pin.missing);
        return { digests: digests.filter((digest) => !gone.has(digest)), pinnedForMs: this.#ports.pinMs };
      }),
    );
  }

  async #pinOnce(
    blobs: Pick<BlobStore, "pin">,
    digests: readonly Digest[],
  ): Promise<{ pinnedForMs: number } | { missing: readonly Digest[] }> {
    const { clock, pinMs } = this.#ports;
    const sentMono = clock.monotonicMs();
    const pin = await blobs.pin(digests, pinMs).catch((error: unknown) => {
      // A malformed digest is nowhere in the store. The kernel refuses it; checking every digest here as well would
      // cost too much.
      if (isFault(error, "invalid")) return { missing: digests.filter((digest) => !isDigest(digest)) };
      throw error;
    });
    if ("missing" in pin) return pin;
    return { pinnedForMs: Math.floor(pin.pinnedForMs - (clock.monotonicMs() - sentMono)) };
  }
}

/** Removes fields that only the host may set. Most commands have none, and are then not copied. */
function unvouched(command: Submit): Submit {
  if (command.reuseEvidence === undefined && command.keyFound === undefined) return command;
  const { reuseEvidence: _untrusted, keyFound: _untrustedToo, ...submit } = command;
  return submit;
}

/** The same for the host's statement about long texts. */
function unkept(command: TextCommand): TextCommand {
  if (command.textsKept === undefined) return command;
  const { textsKept: _untrusted, ...rest } = command;
  return rest;
}

/** The kernel refuses a value that is not a list, or is too long. */
const canBePinned = (digests: readonly Digest[], { state }: HostedShard): boolean =>
  Array.isArray(digests) && digests.length <= state.limits.digestsMax && digests.every(isText);

/** The digests of a result as the caller sent it. */
const digestsOf = (result: Result | Checkpoint | undefined): readonly Digest[] => result?.digests ?? [];

const olderBy = ({ digests, pinnedForMs }: Evidence, ms: number): Evidence => ({
  digests,
  pinnedForMs: Math.floor(pinnedForMs - ms),
});

const isText = (digest: unknown): boolean => typeof digest === "string";

/** Whether the request key may be bound although memory no longer has it. */
const isElsewhere = (shard: HostedShard, { tenant, door, requestKey }: Submit): boolean =>
  requestKey !== undefined &&
  shard.state.keysElsewhereUntilMs > shard.nowMs() &&
  !shard.state.keys.has(requestKeyOf(tenant, door, requestKey));

const pendingKey = ({ open, inFlight }: HostedShard, key: string): RequestKey | undefined =>
  open.keys.find((bound) => bound.key === key) ?? inFlight?.keys.find((bound) => bound.key === key);

const lettingGo = ({ state, forgets }: HostedShard): string => `${state.keysElsewhereUntilMs} ${forgets}`;

/** The kernel's request key in a form that every database can store: without control characters. */
export const journalKeyOf = (key: string): string => JSON.stringify(key);

export type Prepared = AnswerHandler<Command>;

class EvidentCommand implements AnswerHandler<Evidence> {
  readonly #command: BlobCommand;
  readonly #on: Prepared;

  constructor(command: BlobCommand, on: Prepared) {
    this.#command = command;
    this.#on = on;
  }

  ready(evidence: Evidence): void {
    this.#on.ready({ ...this.#command, evidence });
  }

  failed(error: unknown): void {
    this.#on.failed(error);
  }
}
