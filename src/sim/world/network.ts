/**
 * The simulated network: the Transport port over links that delay, lose, duplicate and cut, each direction separately.
 * Messages are copied through JSON, so that machines share no memory.
 *
 * N1 "unavailable" is reported only when the request was surely not delivered; every other failure is
 * "unknown-outcome".
 * N2 A request that was sent may arrive after its sender gave up, also twice.
 */
import { Fault } from "#base/fault.ts";
import type { Random } from "#base/random.ts";
import type {
  ShardRequest,
  ShardResponse,
  ShardService,
  WatchMessage,
  WatchRequest,
} from "#shard/transport/protocol.ts";
import { readFault, writeFault } from "#shard/transport/wire-fault.ts";
import type { Address, Listening, Transport } from "#shard/transport/transport.ts";
import { reasonOf, type Life } from "./machine.ts";
import { type PoisonState, isPoisoned, plantPoison } from "#sim/faults/poison.ts";
import { Stream } from "./stream.ts";
import type { World } from "./world.ts";

/** Probabilities are per message. Faults change these while the world runs. */
export type NetworkConditions = {
  latencyMs: number;
  /** Up to this much more, now and then. */
  spikeMs: number;
  spikeChance: number;
  lossChance: number;
  duplicateChance: number;
  /** After this long a sender considers the connection broken. */
  patienceMs: number;
};

/** Observes messages, for the checkers and for the record of faults. */
export type NetworkObserver = {
  /** A request has reached the machine, which may be stopped and process it later. */
  reached(at: Life, from: Life, request: ShardRequest): void;
  /** A request is handed to the machine that serves it. */
  arrived(at: Life, from: Life, request: ShardRequest): void;
  /** A response leaves the machine that served it (K7: its contents must be durable now). */
  left(from: Life, to: Life, request: ShardRequest, response: ShardResponse, threw: boolean): void;
  streamed(from: Life, to: Life, request: WatchRequest, message: WatchMessage): void;
  injected(kind: string): void;
};

/** One object for all: creating an error with its stack is expensive. */
const callerGone = new Error("the caller has gone");

/** What a life of a machine serves, by address. */
export type ServedAt<S extends { readonly life: Life }> = ReadonlyMap<Address, S>;

type Served = { readonly life: Life; readonly service: ShardService };
type Ends = { readonly from: Life; readonly to: Address; readonly signal: AbortSignal };

export class Network {
  readonly conditions: NetworkConditions;
  readonly #world: World;
  readonly #random: Random;
  readonly #observer: NetworkObserver;
  readonly #served = new Map<Address, Served>();
  /** Directions that are cut: `from>to`. */
  readonly #cut = new Set<string>();

  constructor(world: World, random: Random, conditions: NetworkConditions, observer: NetworkObserver) {
    this.#world = world;
    this.#random = random;
    this.conditions = conditions;
    this.#observer = observer;
  }

  cut(from: string, to: string): void {
    this.#cut.add(`${from}>${to}`);
  }

  heal(): void {
    this.#cut.clear();
  }

  transport(life: Life): Transport {
    const address = `sim://${life.machine.name}`;
    return {
      request: (to, request, signal) => this.#request(life, to, request, signal),
      watch: (to, request, signal) => this.#watch(life, to, request, signal),
      listen: async (service): Promise<Listening> => {
        const served = { life, service };
        this.#served.set(address, served);
        return {
          address,
          close: async () => {
            if (this.#served.get(address) === served) this.#served.delete(address);
          },
        };
      },
      close: async () => {},
    };
  }

  /** A question other than a request to a shard, for what listens at the address. */
  ask<S extends { readonly life: Life }, Q, A>(
    { from, to, signal }: Ends,
    served: ServedAt<S>,
    question: Q,
    answer: (found: S, question: Q, gone: AbortSignal) => Promise<A>,
  ): Promise<A> {
    return this.#exchange<A>({ from, to, text: JSON.stringify(question), signal }, (link) => {
      const { text, gone, settle, resolve, reject } = link;
      this.#arrive(link, served, (found, broken) => {
        const { life } = found;
        const send = (run: () => void) => from.after(this.#delay(), () => settle(run));
        const serve = async (): Promise<void> => {
          try {
            const answered = JSON.stringify(await answer(found, JSON.parse(text) as Q, gone));
            broken();
            if (life.state === "dead") return;
            this.#world.say(`${life.name} < ${from.name} answers ${answered}`);
            if (this.#lost(machineOf(to), from.machine.name)) return;
            send(() => resolve(JSON.parse(answered) as A));
          } catch (error) {
            broken();
            this.#world.say(`${life.name} < ${from.name} threw ${String(error)}`);
            send(() => reject(readFault(writeFault(error, "answer"), to)));
          }
        };
        life.after(0, () => void serve());
      });
    });
  }

  #request(from: Life, to: Address, request: ShardRequest, signal: AbortSignal): Promise<ShardResponse> {
    const text = JSON.stringify(request);
    return this.#exchange<ShardResponse>({ from, to, text, signal }, (link) => this.#deliver(link));
  }

  #exchange<T>({ from, to, text, signal }: Sending, deliver: (link: Link<T>) => void): Promise<T> {
    const world = this.#world;
    world.say(`${from.name} > ${to} ${text}`);
    return new Promise<T>((resolve, reject) => {
      const gone = new AbortController();
      const ended: (() => void)[] = [];
      let over = false;
      const settle = (run: () => void) => {
        if (over) return;
        over = true;
        for (const undo of ended) undo();
        run();
      };
      const fail = (code: "unavailable" | "unknown-outcome", why: string) =>
        settle(() => reject(new Fault(code, "request", { to, why })));
      const aborted = () => {
        // The server learns of it after the network delay.
        world.after(this.#delay(), undefined, () => gone.abort(callerGone));
        settle(() => reject(reasonOf(signal)));
      };
      if (signal.aborted) return aborted();
      signal.addEventListener("abort", aborted, { once: true });
      ended.push(() => signal.removeEventListener("abort", aborted));
      ended.push(from.after(this.conditions.patienceMs, () => fail("unknown-outcome", "no answer")));
      ended.push(from.onEnd(() => world.after(this.#delay(), undefined, () => gone.abort(callerGone))));
      const link = { from, to, text, gone: gone.signal, fail, settle, resolve, reject };
      if (this.#refusedAtOnce(from, to)) {
        from.after(this.#delay(), () => fail("unavailable", "no connection"));
        return;
      }
      deliver(link);
      const { duplicateChance } = this.conditions;
      if (duplicateChance > 0 && this.#random.chance(duplicateChance)) {
        this.#observer.injected("message-doubled");
        deliver(link);
      }
    });
  }

  #deliver(link: Link<ShardResponse>): void {
    const { from, to, text, gone, settle, resolve, reject } = link;
    const name = machineOf(to);
    this.#arrive(link, this.#served, ({ life, service }, broken) => {
      const request = JSON.parse(text) as ShardRequest;
      this.#observer.reached(life, from, request);
      const serve = () => {
        this.#observer.arrived(life, from, request);
        const dose: PoisonState = { fired: false };
        const respond = (response: ShardResponse) => {
          broken();
          if (life.state === "dead") return;
          const answer = JSON.stringify(response);
          this.#world.say(`${life.name} < ${from.name} ${answer}`);
          this.#observer.left(life, from, request, response, dose.fired);
          if (this.#lost(name, from.machine.name)) return;
          from.after(this.#delay(), () => settle(() => resolve(JSON.parse(answer) as ShardResponse)));
        };
        service
          .request(isPoisoned(request) ? plantPoison(JSON.parse(text) as ShardRequest, dose) : request, gone)
          .then(respond, (error: unknown) => {
            broken();
            this.#world.say(`${life.name} < ${from.name} threw ${String(error)}`);
            from.after(this.#delay(), () => settle(() => reject(readFault(writeFault(error, "serve"), to))));
          });
      };
      if (life.state === "stopped") life.after(0, serve);
      else serve();
    });
  }

  /** When the message has travelled, and unless it is lost, it is handed to what is served at the address. */
  #arrive<T, S extends { readonly life: Life }>(
    { from, to, fail }: Link<T>,
    served: ServedAt<S>,
    hand: (found: S, broken: () => void) => void,
  ): void {
    if (this.#lost(from.machine.name, machineOf(to))) return;
    this.#world.after(this.#delay(), undefined, () => {
      const found = served.get(to);
      if (found === undefined || found.life.state === "dead") {
        from.after(this.#delay(), () => fail("unavailable", "connection refused"));
        return;
      }
      const reset = (): void => void from.after(this.#delay(), () => fail("unknown-outcome", "connection reset"));
      hand(found, found.life.onEnd(reset));
    });
  }

  #watch(from: Life, to: Address, request: WatchRequest, signal: AbortSignal): AsyncGenerator<WatchMessage> {
    const open = ({ service }: Served, gone: AbortSignal) => service.watch(structuredClone(request), gone);
    const seen = (life: Life, message: WatchMessage) => this.#observer.streamed(life, from, request, message);
    return this.follow({ from, to, signal }, this.#served, open, seen);
  }

  /** Messages in order, as on one connection; a break ends it for good. `seen` is called as each one leaves. */
  async *follow<S extends { readonly life: Life }, T>(
    { from, to, signal }: Ends,
    served: ServedAt<S>,
    open: (found: S, gone: AbortSignal) => AsyncIterable<T>,
    seen: (life: Life, message: T) => void,
  ): AsyncGenerator<T> {
    const stream = new Stream<T>();
    const world = this.#world;
    const gone = new AbortController();
    const fail = (why: string) => stream.fail(new Fault("unavailable", "watch", { to, why }));
    const leave = () => world.after(this.#delay(), undefined, () => gone.abort(callerGone));
    const aborted = () => stream.fail(reasonOf(signal));
    signal.addEventListener("abort", aborted, { once: true });
    const unmourn = from.onEnd(leave);
    let lastAtMs = world.nowMs;
    const inOrder = (run: () => void) => {
      lastAtMs = Math.max(lastAtMs, world.nowMs + this.#delay());
      // Not after the difference to now: rounded, that could put a message before the one that it waits for.
      world.at(lastAtMs, from, run);
    };
    const serve = async (found: S) => {
      const { life } = found;
      const unbreak = life.onEnd(() => inOrder(() => fail("connection reset")));
      try {
        for await (const message of open(found, gone.signal)) {
          if (life.state === "dead" || gone.signal.aborted) return;
          const text = JSON.stringify(message);
          world.say(`${life.name} ~ ${from.name} ${text}`);
          seen(life, message);
          if (this.#isCut(life.machine.name, from.machine.name)) return inOrder(() => fail("connection lost"));
          inOrder(() => stream.push(JSON.parse(text) as T));
        }
        inOrder(() => stream.end());
      } catch (error) {
        inOrder(() => fail(`the server threw: ${String(error)}`));
      } finally {
        unbreak();
      }
    };
    if (this.#isCut(from.machine.name, machineOf(to))) from.after(this.#delay(), () => fail("no connection"));
    else
      world.after(this.#delay(), undefined, () => {
        const found = served.get(to);
        if (found === undefined || found.life.state === "dead") inOrder(() => fail("connection refused"));
        else found.life.after(0, () => void serve(found));
      });
    try {
      yield* stream;
    } finally {
      signal.removeEventListener("abort", aborted);
      unmourn();
      leave();
    }
  }

  #refusedAtOnce(from: Life, to: Address): boolean {
    // A cut link is noticed at once if there is no connection yet, else only by silence.
    return this.#isCut(from.machine.name, machineOf(to)) && this.#random.chance(0.5);
  }

  #isCut(from: string, to: string): boolean {
    if (this.#cut.size === 0) return false;
    return this.#cut.has(`${from}>${to}`);
  }

  #lost(from: string, to: string): boolean {
    if (this.#isCut(from, to)) return true;
    const { lossChance } = this.conditions;
    if (lossChance === 0 || !this.#random.chance(lossChance)) return false;
    this.#observer.injected("message-lost");
    return true;
  }

  #delay(): number {
    const { latencyMs, spikeMs, spikeChance } = this.conditions;
    const spike = spikeChance > 0 && this.#random.chance(spikeChance) ? this.#random.fraction() * spikeMs : 0;
    return latencyMs * (0.5 + this.#random.fraction()) + spike;
  }
}

type Sending = {
  readonly from: Life;
  readonly to: Address;
  readonly text: string;
  readonly signal: AbortSignal;
};

type Link<T> = {
  readonly from: Life;
  readonly to: Address;
  readonly text: string;
  readonly gone: AbortSignal;
  readonly fail: (code: "unavailable" | "unknown-outcome", why: string) => void;
  readonly settle: (run: () => void) => void;
  readonly resolve: (response: T) => void;
  readonly reject: (error: Error) => void;
};

export const machineOf = (address: Address): string => address.slice("sim://".length);
export const addressOf = (machine: string): Address => `sim://${machine}`;
