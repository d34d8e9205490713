/**
 * Compatibility with serf agents. They keep logical clocks and announce who joins and who intends to leave. We store
 * what we hear, pass it on once, include it in our own state, and announce our own joining and leaving in the same way.
 * Their events and queries are passed on too, so that a fleet with few agents among many nodes works like one of agents
 * only.
 */
import { hash32 } from "#base/random.ts";
import type { Core } from "#mesh/machine/core.ts";
import { Fields } from "#mesh/wire/fields.ts";
import { encodeUser } from "#mesh/wire/messages.ts";
import {
  decodeSerfState,
  encodeIntent,
  encodeSerfState,
  lamportIn,
  readFields,
  serfCode,
  type Intent,
} from "./serf-messages.ts";
import { userMessageIn } from "#mesh/wire/user-message.ts";

const seenMax = 1_024;
const flagNoBroadcast = 2;

export class SerfNeighbour {
  readonly #core: Core;
  /** The logical time of each member's last intent. */
  readonly #statusTimes = new Map<string, number>();
  readonly #seen = new Set<string>();
  readonly #answer: (query: Fields) => void;
  #time = 1;
  #eventTime = 1;
  #queryTime = 1;

  constructor(core: Core, answer: (query: Fields) => void) {
    this.#core = core;
    this.#answer = answer;
  }

  get time(): number {
    return this.#time;
  }

  heard(message: Uint8Array): void {
    switch (message[0]) {
      case serfCode.join:
      case serfCode.leave:
        return this.#heardIntent(message);
      case serfCode.userEvent:
        this.#eventTime = Math.max(this.#eventTime, lamportIn(new Fields(readFields(message)), "LTime") + 1);
        if (this.#isNew(message)) this.#passOn(message);
        return;
      case serfCode.query:
        return this.#heardQuery(message);
      default: // answers to others' queries and relay requests: not needed here, and no error
        return;
    }
  }

  #heardIntent(message: Uint8Array): void {
    const raw = readFields(message);
    const { effect, limits } = this.#core;
    const ours = userMessageIn(raw, limits.userMessageBytesMax);
    if (ours) return effect({ kind: "tell", event: { kind: "user", ...ours } });
    const fields = new Fields(raw);
    const kind = message[0] === serfCode.join ? "join" : "leave";
    const intent: Intent = { kind, time: lamportIn(fields, "LTime"), node: fields.name("Node") };
    this.#witness(intent.time);
    if (this.#isNews(intent)) this.#passOn(message);
  }

  #isNews({ kind, time, node }: Intent): boolean {
    const { name, isLeaving, roster } = this.#core;
    if (time <= (this.#statusTimes.get(node) ?? 0)) return false;
    if (kind === "leave" && node === name && !isLeaving()) {
      this.announce("join"); // an old intent of ours, or someone else's: we stay
      return false;
    }
    if (this.#statusTimes.size >= this.#core.limits.membersMax * 2) this.#forgetStrangers();
    this.#statusTimes.set(node, time);
    if (kind === "leave") roster.callLeft(node);
    return true;
  }

  #forgetStrangers(): void {
    for (const name of this.#statusTimes.keys()) if (!this.#core.roster.get(name)) this.#statusTimes.delete(name);
  }

  #heardQuery(message: Uint8Array): void {
    const fields = new Fields(readFields(message));
    this.#queryTime = Math.max(this.#queryTime, lamportIn(fields, "LTime") + 1);
    if (!this.#isNew(message)) return;
    if ((fields.uint32("Flags") & flagNoBroadcast) === 0) this.#passOn(message);
    this.#answer(fields);
  }

  /** Announces to all agents that we are here, or that we leave. */
  announce(kind: Intent["kind"], whenDone?: () => void): void {
    const { name: node, passedOn } = this.#core;
    this.#time += 1;
    const bytes = encodeUser(encodeIntent({ kind, time: this.#time, node }));
    this.#statusTimes.set(node, this.#time);
    passedOn.add({ about: `intent of ${node}`, bytes, whenDone });
  }

  state(): Uint8Array {
    const { roster } = this.#core;
    const left = roster.all.filter(({ state, name }) => state === "left" && this.#statusTimes.has(name));
    const known = [...this.#statusTimes].filter(([name]) => roster.get(name));
    return encodeSerfState({
      time: this.#time,
      eventTime: this.#eventTime,
      queryTime: this.#queryTime,
      statusTimes: new Map(known),
      left: left.map(({ name }) => name),
    });
  }

  /** A member that is neither a serf agent nor a node of ours sends another state or none. */
  merge(bytes: Uint8Array): void {
    if (bytes[0] !== serfCode.pushPull) return;
    const { time, eventTime, queryTime, statusTimes, left } = decodeSerfState(bytes);
    if (time > 0) this.#witness(time - 1);
    this.#eventTime = Math.max(this.#eventTime, eventTime);
    this.#queryTime = Math.max(this.#queryTime, queryTime);
    const gone = new Set(left);
    for (const [node, at] of statusTimes)
      this.#isNews(gone.has(node) ? { kind: "leave", time: at + 1, node } : { kind: "join", time: at, node });
  }

  #witness(time: number): void {
    this.#time = Math.max(this.#time, time + 1);
  }

  #passOn(message: Uint8Array): void {
    this.#core.passedOn.add({ bytes: encodeUser(message) });
  }

  #isNew(message: Uint8Array): boolean {
    const text = Buffer.from(message).toString("latin1");
    const key = `${hash32(text)}.${hash32(text, 1)}.${message.length}`;
    if (this.#seen.has(key)) return false;
    this.#seen.add(key);
    for (const oldest of this.#seen) {
      if (this.#seen.size <= seenMax) break;
      this.#seen.delete(oldest);
    }
    return true;
  }
}
