/** Who hears what happens on a connection: the layer above, be it a server or a client. */
import type { HeaderList } from "#h2/hpack/header-list.ts";
import type { Stream, StreamHandler } from "./stream.ts";

export type ConnectionHandler = {
  /** Server: a request has begun; answers who handles the rest of it. */
  onRequest?(stream: Stream, headers: HeaderList, ended: boolean): StreamHandler;
  /** The peer's SETTINGS have come: it speaks HTTP/2. */
  onReady?(): void;
  /** The peer takes no new streams; those above `lastStreamId` were not touched and may be tried elsewhere. */
  onGoaway?(lastStreamId: number, code: number): void;
  /** The machine has stopped. What is in the output is still to be written. */
  onClosed?(why: ClosedWhy): void;
  onHandlerFailed?(error: unknown, stream: Stream): void;
  /** Something was laid into the output outside of `receive`, `tick` and `outputDone`, after which one looks anyway. */
  onOutput?(): void;
};

/** `by` the peer's GOAWAY or the socket's end, or by ourselves; with the `error` when it was a bug of our own. */
export type ClosedWhy = {
  readonly by: "us" | "peer";
  readonly code: number;
  readonly why: string;
  readonly error?: unknown;
};
