/** Calls the handlers of streams, so that an exception costs its stream and not the connection (C3). */
import type { HeaderList } from "#h2/hpack/header-list.ts";
import type { Stream } from "./stream.ts";

const noBytes = Buffer.alloc(0);

export class StreamCalls {
  readonly #onFailed: (stream: Stream, error: unknown) => void;

  constructor(onFailed: (stream: Stream, error: unknown) => void) {
    this.#onFailed = onFailed;
  }

  headers(stream: Stream, headers: HeaderList, ended: boolean): void {
    try {
      stream.handler.onHeaders?.(stream, headers, ended);
    } catch (error) {
      this.#onFailed(stream, error);
    }
  }

  data(stream: Stream, bytes: Buffer, ended: boolean): void {
    try {
      stream.handler.onData(stream, bytes, ended);
    } catch (error) {
      this.#onFailed(stream, error);
    }
  }

  /** A handler without onTrailers gets the end as well. */
  trailers(stream: Stream, trailers: HeaderList): void {
    try {
      if (stream.handler.onTrailers) stream.handler.onTrailers(stream, trailers);
      else stream.handler.onData(stream, noBytes, true);
    } catch (error) {
      this.#onFailed(stream, error);
    }
  }

  writable(stream: Stream): void {
    try {
      stream.handler.onWritable?.(stream);
    } catch (error) {
      this.#onFailed(stream, error);
    }
  }

  reset(stream: Stream, code: number): void {
    try {
      stream.handler.onReset(stream, code);
    } catch (error) {
      this.#onFailed(stream, error);
    }
  }
}
