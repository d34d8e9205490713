/** Callbacks of a connection for the layer above: a server or a client. */
import type { HeaderList } from "#h2/hpack/header-list.ts";
import type { Stream, StreamHandler } from "./stream.ts";

export type ConnectionHandler = {
  /** Server: a request has begun; returns the handler for the rest of it. */
  onRequest?(stream: Stream, headers: HeaderList, ended: boolean): StreamHandler;
  /** The peer's SETTINGS have come: it speaks HTTP/2. */
  onReady?(): void;
  /** The peer accepts no new streams; those above `lastStreamId` were not processed and may be tried elsewhere. */
  onGoaway?(lastStreamId: number, code: number): void;
  /** The machine has stopped. Its remaining output must still be written. */
  onClosed?(why: ClosedWhy): void;
  onHandlerFailed?(error: unknown, stream: Stream): void;
  /**
   * Output was added outside of `receive`, `tick` and `outputDone`, after which the caller checks for output anyway.
   */
  onOutput?(): void;
};

/** `by`: the peer's GOAWAY, the socket's end, or ourselves; with the `error` if it was a bug of our own. */
export type ClosedWhy = {
  readonly by: "us" | "peer";
  readonly code: number;
  readonly why: string;
  readonly error?: unknown;
};
