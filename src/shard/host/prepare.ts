/**
 * What a command needs from outside before it can be decided: pins on the blobs that it names (K3) and what the
 * journal remembers of its request key (K1). Requests of the same turn share one call. A caller's own word for any of
 * it is thrown away.
 */
import type { Clock } from "#base/clock.ts";
import { isDigest, type Digest } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Command, CommandOf, Submit } from "#kernel/model/command.ts";
import type { Evidence, Result, Reuse } from "#kernel/model/model.ts";
import { requestKeyOf } from "#kernel/apply/job.ts";
import { decideSubmit } from "#kernel/decide/submit.ts";
import { visibleTask } from "#kernel/read/visible.ts";
import type { Journal, RequestKey } from "#journal/journal.ts";
import type { HostedShard } from "./shard.ts";
import type { LargeTexts } from "#shard/texts/large-texts.ts";
import type { TextCommand } from "#shard/texts/text-places.ts";

/**
 * Where what a tenant's results name is looked for and pinned. `whose` "tenant": among what the tenant was given (B5),
 * for callers that are narrowed to it, who could otherwise find out what others have. "any": also among what nodes made
 * for it, and others.
 */
export type PinsOf = (tenant: string, whose: "tenant" | "any") => Pick<BlobStore, "pin">;

export type PreparePorts = {
  /** Keeps long texts in the store; left out, they stay in memory. */
  readonly texts?: LargeTexts | undefined;
  readonly clock: Clock;
  readonly pins: PinsOf;
  readonly journal: Pick<Journal, "findKeys">;
  /** How long what a commit names is pinned at first. */
  readonly pinMs: number;
};

const noEvidence: Evidence = { digests: [], pinnedForMs: 0 };

export class Preparer {
  readonly #pins = new WeakMap<Pick<BlobStore, "pin">, Turn<readonly Digest[], Evidence>>();
  readonly #keys = new Map<HostedShard, Turn<string, RequestKey | undefined>>();
  readonly #ports: PreparePorts;

  constructor(ports: PreparePorts) {
    this.#ports = ports;
  }

  /**
   * Hands on the command as the host vouches for it: at once where nothing is needed from outside, else later. By
   * callback, because a promise or two for each of a hundred thousand commits a second is what a core has to spare.
   */
  prepare(shard: HostedShard, given: CommandOf<"commit"> | TextCommand, on: Prepared): void {
    if (given.kind === "commit") return this.#commit(shard, given, on);
    const command = unkept(given);
    const prepared = command.kind === "submit" ? this.#submit(shard, command) : this.#kept(command);
    if (!(prepared instanceof Promise)) return on.ready(prepared);
    prepared.then(
      (submit) => on.ready(submit),
      (error: unknown) => on.failed(error),
    );
  }

  forget(shard: HostedShard): void {
    this.#keys.delete(shard);
  }

  #commit(shard: HostedShard, command: CommandOf<"commit">, on: Prepared): void {
    const digests = digestsOf(command.result);
    if (digests.length === 0 || !canBePinned(digests, shard)) return on.ready({ ...command, evidence: noEvidence });
    // A task that does not exist, or is another tenant's, is refused in any case: nothing is pinned for it.
    const tenant = visibleTask(shard.state, command)?.stage.job.tenant.name;
    if (tenant === undefined) return on.ready({ ...command, evidence: noEvidence });
    this.#pinsOf(tenant, command.tenant === undefined ? "any" : "tenant").ask(digests, new EvidentCommit(command, on));
  }

  #pinsOf(tenant: string, whose: "tenant" | "any"): Turn<readonly Digest[], Evidence> {
    const blobs = this.#ports.pins(tenant, whose);
    let turn = this.#pins.get(blobs);
    if (!turn) this.#pins.set(blobs, (turn = new Turn((asked) => this.#pin(blobs, asked))));
    return turn;
  }

  #submit(shard: HostedShard, command: Submit): Command | Promise<Command> {
    const submit = unvouched(command);
    const results = Array.isArray(submit.reuse) ? submit.reuse.map((one: Reuse) => digestsOf(one?.result)) : [];
    const digests = results.every((each) => canBePinned(each, shard)) ? results.flat() : [];
    if (digests.length === 0 && !isElsewhere(shard, submit))
      return this.#isAnswered(shard, submit) ? submit : this.#kept(submit);
    return this.#submitLater(shard, submit, digests);
  }

  /**
   * Whether nothing new would come of it: then nothing is kept for it either, or whoever is refused could fill the
   * store. It is decided in this same turn; and if something came of it after all, its texts are with it.
   */
  #isAnswered(shard: HostedShard, submit: Submit): boolean {
    const { texts } = this.#ports;
    if (!texts?.hasLarge(submit)) return true;
    try {
      const decision = decideSubmit(shard.state, texts.referring(submit), shard.nowMs());
      return !decision.ok || decision.events[0]?.kind !== "job-submitted";
    } catch {
      return true; // it is refused for that (K12)
    }
  }

  #kept(command: TextCommand): Command | Promise<Command> {
    const { texts } = this.#ports;
    if (!texts?.hasLarge(command)) return command;
    return texts.keep(command, command.kind === "submit" ? command.deadlineMs : undefined);
  }

  async #submitLater(shard: HostedShard, submit: Submit, digests: readonly Digest[]): Promise<Command> {
    const reuseEvidence = digests.length > 0 ? await later(this.#pinsOf(submit.tenant, "tenant"), digests) : undefined;
    const evident = reuseEvidence === undefined ? submit : { ...submit, reuseEvidence };
    const { requestKey } = submit;
    if (requestKey === undefined) return this.#kept(evident);
    const key = journalKeyOf(requestKeyOf(submit.tenant, submit.door, requestKey));
    // A key may be bound and let go of again while the journal is being asked: then it has to be asked once more.
    for (let asked: string | undefined; isElsewhere(shard, submit) && asked !== lettingGo(shard);) {
      asked = lettingGo(shard);
      // What memory bound and let go of is not in the journal before its batch is.
      const found = pendingKey(shard, key) ?? (await later(this.#keysOf(shard), key));
      if (found) return { ...evident, keyFound: { job: found.job, payloadHash: found.payloadHash } };
    }
    return this.#kept(evident);
  }

  #keysOf(shard: HostedShard): Turn<string, RequestKey | undefined> {
    let turn = this.#keys.get(shard);
    if (!turn) {
      turn = new Turn(async (keys) => {
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
        // Refused whatever else is there; the evidence without the missing one makes the refusal name it.
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
      // A name that is none is nowhere. That it is none the kernel says; it is not worth a look at every digest here.
      if (isFault(error, "invalid")) return { missing: digests.filter((digest) => !isDigest(digest)) };
      throw error;
    });
    if ("missing" in pin) return pin;
    return { pinnedForMs: Math.floor(pin.pinnedForMs - (clock.monotonicMs() - sentMono)) };
  }
}

/** Without a caller's own word for what is the host's to say. Most have none, and then it is not copied. */
function unvouched(command: Submit): Submit {
  if (command.reuseEvidence === undefined && command.keyFound === undefined) return command;
  const { reuseEvidence: _untrusted, keyFound: _untrustedToo, ...submit } = command;
  return submit;
}

/** The same for what the host says of its texts. */
function unkept(command: TextCommand): TextCommand {
  if (command.textsKept === undefined) return command;
  const { textsKept: _untrusted, ...rest } = command;
  return rest;
}

/** What is no list, or too long, is for the kernel to refuse. */
const canBePinned = (digests: readonly Digest[], { state }: HostedShard): boolean =>
  Array.isArray(digests) && digests.length <= state.limits.digestsMax && digests.every(isText);

/** Of what a caller calls a result. */
const digestsOf = (result: Result | undefined): readonly Digest[] => result?.digests ?? [];

const isText = (digest: unknown): boolean => typeof digest === "string";

/** Whether the request key may be bound although memory no longer knows it. */
const isElsewhere = (shard: HostedShard, { tenant, door, requestKey }: Submit): boolean =>
  requestKey !== undefined &&
  shard.state.keysElsewhereUntilMs > shard.nowMs() &&
  !shard.state.keys.has(requestKeyOf(tenant, door, requestKey));

const pendingKey = ({ open, inFlight }: HostedShard, key: string): RequestKey | undefined =>
  open.keys.find((bound) => bound.key === key) ?? inFlight?.keys.find((bound) => bound.key === key);

const lettingGo = ({ state, forgets }: HostedShard): string => `${state.keysElsewhereUntilMs} ${forgets}`;

/** The kernel's name for a request key as every database can hold it: without control characters. */
export const journalKeyOf = (key: string): string => JSON.stringify(key);

type When<A> = { ready(answer: A): void; failed(error: unknown): void };
export type Prepared = When<Command>;

class EvidentCommit implements When<Evidence> {
  readonly #command: CommandOf<"commit">;
  readonly #on: Prepared;

  constructor(command: CommandOf<"commit">, on: Prepared) {
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

/** Gathers what is asked in one turn of the event loop and answers it with one call. */
class Turn<Q, A> {
  readonly #answer: (asked: readonly Q[]) => Promise<readonly A[]>;
  #questions: Q[] = [];
  #askers: When<A>[] = [];

  constructor(answer: (asked: readonly Q[]) => Promise<readonly A[]>) {
    this.#answer = answer;
  }

  ask(question: Q, when: When<A>): void {
    this.#questions.push(question);
    this.#askers.push(when);
    if (this.#askers.length === 1) queueMicrotask(() => void this.#run());
  }

  async #run(): Promise<void> {
    const questions = this.#questions;
    const askers = this.#askers;
    this.#questions = [];
    this.#askers = [];
    let answers: readonly A[];
    try {
      answers = await this.#answer(questions);
    } catch (error) {
      for (const asker of askers) asker.failed(error);
      return;
    }
    for (let i = 0; i < askers.length; i += 1) askers[i]?.ready(answers[i] as A);
  }
}

const later = <Q, A>(turn: Turn<Q, A>, question: Q): Promise<A> =>
  new Promise((ready, failed) => turn.ask(question, { ready, failed }));
