/** One call from its handler's side. */
import type { HeaderList } from "#h2/hpack/header-list.ts";
import { decodeBinary, metadataFields, type Metadata } from "./metadata.ts";
import { grpcCode, GrpcError } from "./status.ts";

export class ServerCall<P> {
  readonly path: string;
  readonly headers: HeaderList;
  /** Who calls. */
  readonly caller: P;
  /** On the monotonic clock; Infinity when the caller gave no deadline. */
  readonly deadlineMono: number;
  /** Sent before the first message, if they are set by then. */
  responseFields: [string, string][] | undefined;
  trailerFields: [string, string][] | undefined;
  #abort: AbortController | undefined;
  #cancelled: GrpcError | undefined;

  constructor(path: string, headers: HeaderList, caller: P, deadlineMono: number) {
    this.path = path;
    this.headers = headers;
    this.caller = caller;
    this.deadlineMono = deadlineMono;
  }

  /** Aborted when the caller disconnects, the deadline passes or the connection is lost. Created on first use. */
  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#cancelled) this.#abort.abort(this.#cancelled);
    return this.#abort.signal;
  }

  /** A field that the caller sent; undefined for a malformed binary one. */
  metadata(name: string): string | undefined {
    return this.headers.get(name);
  }

  binaryMetadata(name: string): Buffer | undefined {
    const value = this.headers.get(name);
    return value === undefined ? undefined : decodeBinary(value);
  }

  sendMetadata(metadata: Metadata): void {
    this.responseFields = [...(this.responseFields ?? []), ...metadataFields(metadata)];
  }

  sendTrailers(metadata: Metadata): void {
    this.trailerFields = [...(this.trailerFields ?? []), ...metadataFields(metadata)];
  }

  /** For the server: the answer is no longer wanted. */
  cancel(why: GrpcError = new GrpcError(grpcCode.cancelled, "the caller has gone")): void {
    this.#cancelled ??= why;
    this.#abort?.abort(this.#cancelled);
  }
}
