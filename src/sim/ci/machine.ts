/** A machine of the simulation: what runs on it stands still while it sleeps, and never goes on once it is dead. */
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import type { Random } from "#base/random.ts";
import type { Transport } from "#shard/transport/transport.ts";

/** How often, of all messages, one is lost, its answer is lost, or it arrives late. */
export type Weather = { lostChance: number; unansweredChance: number; lateChance: number };

/** Longer than any lease: what was sent before a pause may arrive long after it. */
const lateMsMax = 60_000;
const usualMsMax = 20;

export class Machine {
  readonly name: string;
  readonly clock: Clock;
  readonly #world: Clock;
  readonly #random: Random;
  readonly #weather: Weather;
  #state: "up" | "asleep" | "dead" = "up";
  #waiting: (() => void)[] = [];

  constructor(name: string, world: Clock, weather: Weather, random: Random) {
    this.name = name;
    this.#world = world;
    this.#weather = weather;
    this.#random = random;
    this.clock = this.#clockOf(world);
  }

  get isUp(): boolean {
    return this.#state === "up";
  }

  get isDead(): boolean {
    return this.#state === "dead";
  }

  kill(): void {
    this.#state = "dead";
    this.#waiting = [];
  }

  sleep(): void {
    if (this.#state === "up") this.#state = "asleep";
  }

  wake(): void {
    if (this.#state !== "asleep") return;
    this.#state = "up";
    for (const run of this.#waiting.splice(0)) run();
  }

  /** Resolves while the machine is up. */
  async up(): Promise<void> {
    await new Promise<void>((resolve) => this.#whenUp(resolve));
  }

  /** A call to something elsewhere, through the network. */
  async call<T>(doing: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    await this.up();
    const { lostChance, unansweredChance, lateChance } = this.#weather;
    const isLate = this.#random.chance(lateChance);
    // once it is sent, it arrives whatever becomes of its sender
    await this.#world.sleep(isLate ? this.#random.between(1_000, lateMsMax) : this.#random.below(usualMsMax));
    if (this.#random.chance(lostChance)) {
      await this.up();
      signal?.throwIfAborted();
      throw new Fault("unavailable", doing, { why: "the message was lost" });
    }
    const answer = await work().then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    );
    await this.#world.sleep(this.#random.below(usualMsMax));
    await this.up();
    signal?.throwIfAborted();
    if (this.#random.chance(unansweredChance))
      throw new Fault("unknown-outcome", doing, { why: "the answer was lost" });
    if ("error" in answer) throw answer.error;
    return answer.value;
  }

  transport(inner: Transport): Transport {
    return {
      ...inner,
      request: async (to, request, signal) =>
        await this.call("ask a shard", async () => await inner.request(to, request, signal), signal),
    };
  }

  #whenUp(run: () => void): void {
    if (this.#state === "up") run();
    else if (this.#state === "asleep") this.#waiting.push(run);
  }

  /** Time goes on while it sleeps; what falls due meanwhile runs when it wakes. */
  #clockOf(world: Clock): Clock {
    const after = (ms: number, run: () => void): (() => void) => {
      let isCancelled = false;
      const cancel = world.after(ms, () =>
        this.#whenUp(() => {
          if (!isCancelled) run();
        }),
      );
      return () => {
        isCancelled = true;
        cancel();
      };
    };
    return {
      monotonicMs: () => world.monotonicMs(),
      wallMs: () => world.wallMs(),
      after,
      async sleep(ms, signal) {
        signal?.throwIfAborted();
        const { promise, resolve, reject } = Promise.withResolvers<void>();
        const stop = (): void => reject(signal?.reason as Error);
        const cancel = after(ms, resolve);
        signal?.addEventListener("abort", stop, { once: true });
        try {
          await promise;
        } finally {
          cancel();
          signal?.removeEventListener("abort", stop);
        }
      },
    };
  }
}
