/**
 * A stream with a pull interface: its data is an async iterable, `write` waits until the stream accepts more, and a
 * reset is a fault wherever a caller waits. Bytes count as consumed when the next ones are requested, so never more
 * than the stream's window is held here.
 */
import { Fault } from "#base/fault.ts";
import { errorCodeName } from "#h2/frames/error-codes.ts";
import type { HeaderList } from "#h2/hpack/header-list.ts";
import type { Stream, StreamHandler, WriteOptions } from "./stream.ts";

export class PulledStream implements StreamHandler, AsyncIterable<Buffer> {
  readonly stream: Stream;
  /** Created on first use: a stream that is reset at once should cost little. */
  #response: PromiseWithResolvers<HeaderList> | undefined;
  #answered: HeaderList | undefined;
  #reset: AbortController | undefined;
  #fault: Fault | undefined;
  #chunks: Buffer[] = [];
  #ended = false;
  #trailers: HeaderList | undefined;
  #wakeReader: (() => void) | undefined;
  #wakeWriter: (() => void) | undefined;

  /** Takes the stream over. `ended`: its headers were also its end. */
  constructor(stream: Stream, ended = false) {
    this.stream = stream;
    this.#ended = ended;
    stream.handler = this;
  }

  /** Client: the response's headers; 1xx are skipped. */
  get response(): Promise<HeaderList> {
    if (!this.#response) {
      this.#response = Promise.withResolvers();
      this.#response.promise.catch(() => {}); // handled by those that wait for it, if any
      if (this.#answered) this.#response.resolve(this.#answered);
      else if (this.#fault) this.#response.reject(this.#fault);
    }
    return this.#response.promise;
  }

  /** Known when the data has ended. */
  get trailers(): HeaderList | undefined {
    return this.#trailers;
  }

  /** Aborted when the stream is reset, with the fault as its reason. */
  get signal(): AbortSignal {
    if (!this.#reset) {
      this.#reset = new AbortController();
      if (this.#fault) this.#reset.abort(this.#fault);
    }
    return this.#reset.signal;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void, undefined> {
    for (;;) {
      this.#throwIfReset();
      const chunk = this.#chunks.shift();
      if (chunk !== undefined) {
        yield chunk;
        this.stream.consume(chunk.length);
      } else if (this.#ended) return;
      else
        await new Promise<void>((wake) => {
          this.#wakeReader = wake;
        });
    }
  }

  /** Resolves when the stream accepts more; rejects when it was reset. */
  async write(bytes: Uint8Array, options: WriteOptions = {}): Promise<void> {
    this.#throwIfReset();
    if (this.stream.write(bytes, options)) return;
    await new Promise<void>((wake) => {
      this.#wakeWriter = wake;
    });
    this.#throwIfReset();
  }

  onHeaders(_stream: Stream, headers: HeaderList, ended: boolean): void {
    if (headers.status < 200) return;
    this.#answered = headers;
    this.#response?.resolve(headers);
    if (ended) this.#end(undefined);
  }

  onData(_stream: Stream, bytes: Buffer, ended: boolean): void {
    if (bytes.length > 0) this.#chunks.push(Buffer.from(bytes)); // they are borrowed
    if (ended) this.#end(undefined);
    else this.#wakeReader?.();
  }

  onTrailers(_stream: Stream, trailers: HeaderList): void {
    this.#end(trailers);
  }

  onWritable(): void {
    this.#wakeWriter?.();
  }

  onReset(_stream: Stream, code: number): void {
    const why = this.stream.lost ? "the connection is gone" : "the stream was reset";
    const fault = new Fault("unavailable", "use stream", { why, code: errorCodeName(code) });
    this.#chunks = [];
    this.#fault = fault;
    this.#reset?.abort(fault);
    this.#response?.reject(fault);
    this.#wakeReader?.();
    this.#wakeWriter?.();
  }

  #throwIfReset(): void {
    if (this.#fault) throw this.#fault;
  }

  #end(trailers: HeaderList | undefined): void {
    this.#ended = true;
    this.#trailers = trailers;
    this.#wakeReader?.();
  }
}
