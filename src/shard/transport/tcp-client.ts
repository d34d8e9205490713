/**
 * The calling end: one connection per address, opened on first use and again after it was lost; many concurrent calls
 * and streams over it, told apart by their ids.
 *
 * A call that was never handed to the socket is "unavailable"; once it was, losing the connection makes it
 * "unknown-outcome".
 */
import { connect, type Socket } from "node:net";
import { orAborted } from "#base/abort.ts";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import type { Frame } from "./frames.ts";
import { parseAddress } from "./tcp-address.ts";
import { Connection, type ConnectionLimits } from "./tcp-connection.ts";
import { dialWith } from "./tcp-secret.ts";
import { readFault, type FaultBody } from "./tcp-fault.ts";
import { Inbox } from "./tcp-inbox.ts";
import type { Address } from "./transport.ts";

export type ClientLimits = ConnectionLimits & {
  /** Concurrent calls and streams per address. */
  readonly inFlightMax: number;
  /** Messages of a stream that may be in flight. */
  readonly streamCredit: number;
};

type Pending = {
  readonly method: string;
  answer(body: unknown): void;
  item(body: unknown): void;
  end(): void;
  fail(fault: Fault): void;
};

export class TcpLink {
  readonly #address: Address;
  readonly #clock: Clock;
  readonly #limits: ClientLimits;
  readonly #secret: string | undefined;
  readonly #pending = new Map<number, Pending>();
  #connection: Connection | undefined;
  #lastId = 0;

  constructor(address: Address, clock: Clock, limits: ClientLimits, secret?: string) {
    this.#secret = secret;
    this.#address = address;
    this.#clock = clock;
    this.#limits = limits;
  }

  async call(method: string, body: unknown, signal: AbortSignal): Promise<unknown> {
    const answer = Promise.withResolvers<unknown>();
    const fail = (fault: Fault): void => answer.reject(fault);
    const pending: Pending = {
      method,
      answer: answer.resolve,
      item: () => {},
      end: () => answer.resolve(undefined),
      fail,
    };
    using _call = await this.#begin(pending, { method, body }, signal, answer.reject);
    return await answer.promise;
  }

  async *stream(method: string, body: unknown, signal: AbortSignal): AsyncGenerator<unknown> {
    const inbox = new Inbox<unknown>();
    const pending: Pending = {
      method,
      answer: () => inbox.close(),
      item: (message) => inbox.put(message),
      end: () => inbox.close(),
      fail: (fault) => inbox.fail(fault),
    };
    const credit = this.#limits.streamCredit;
    using call = await this.#begin(pending, { method, body, credit }, signal, (reason) => inbox.fail(reason));
    let consumed = 0;
    for await (const message of inbox) {
      yield message;
      consumed += 1;
      // The reader returns half of the credit at a time: one small frame for many messages.
      if (consumed * 2 >= credit) {
        call.credit(consumed);
        consumed = 0;
      }
    }
  }

  close(why: Fault): void {
    this.#connection?.closePolitely(why);
  }

  /** Sends the call. Disposing of it forgets it, and cancels it at the peer if it is not over. */
  async #begin(pending: Pending, body: object, signal: AbortSignal, abandon: (reason: Error) => void) {
    signal.throwIfAborted();
    if (this.#pending.size >= this.#limits.inFlightMax)
      throw new Fault("exhausted", `call ${pending.method}`, {
        to: this.#address,
        inFlightMax: this.#limits.inFlightMax,
      });
    const connection = await orAborted(this.#connected(), signal);
    const id = this.#nextId();
    this.#pending.set(id, pending);
    const stop = (): void => abandon(signal.reason as Error);
    signal.addEventListener("abort", stop, { once: true });
    const forget = (): void => {
      signal.removeEventListener("abort", stop);
      if (this.#pending.delete(id) && connection.isOpen) connection.send("cancel", id);
    };
    try {
      connection.send("call", id, body);
    } catch (error) {
      this.#pending.delete(id);
      forget();
      throw error;
    }
    const credit = (count: number): void => {
      if (this.#pending.has(id) && connection.isOpen) connection.send("credit", id, count);
    };
    return { credit, [Symbol.dispose]: forget };
  }

  async #connected(): Promise<Connection> {
    const connection = (this.#connection ??= this.#open());
    try {
      await connection.ready;
    } catch (cause) {
      const why =
        cause instanceof Fault ? (cause.facts["why"] ?? cause.facts["peerSays"] ?? cause.message) : String(cause);
      throw new Fault("unavailable", "connect", { to: this.#address, why }, cause);
    }
    return connection;
  }

  #open(): Connection {
    const connection = new Connection(dial(this.#address, this.#secret), this.#clock, this.#limits);
    connection.onFrame = (frame) => this.#receive(frame);
    void connection.closed.then((why) => {
      if (this.#connection === connection) this.#connection = undefined;
      for (const [id, pending] of this.#pending) {
        this.#pending.delete(id);
        pending.fail(
          new Fault("unknown-outcome", `call ${pending.method}`, { to: this.#address, why: why.message }, why),
        );
      }
    });
    return connection;
  }

  #receive({ kind, id, body }: Frame): void {
    const pending = this.#pending.get(id);
    if (!pending) return; // cancelled here while the answer was on its way
    if (kind === "item") return pending.item(body);
    this.#pending.delete(id);
    if (kind === "answer") pending.answer(body);
    else if (kind === "end") pending.end();
    else if (kind === "fault") pending.fail(readFault(body as FaultBody, this.#address));
    else throw new Fault("invalid", "read answer", { kind });
  }

  #nextId(): number {
    do this.#lastId = (this.#lastId + 1) % 0xffff_ffff;
    while (this.#lastId === 0 || this.#pending.has(this.#lastId));
    return this.#lastId;
  }
}

function dial(address: Address, secret: string | undefined): Socket {
  const endpoint = parseAddress(address);
  if (endpoint.kind === "unix") return connect(endpoint.path);
  const { port, host } = endpoint;
  return secret === undefined ? connect(port, host) : dialWith(secret, port, host);
}
