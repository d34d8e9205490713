/** WebSockets on streams of HTTP/2: extended CONNECT (RFC 8441). What is spoken on them is the room `http`'s matter. */
import { Duplex } from "node:stream";
import { errorCode } from "#h2/frames/error-codes.ts";
import type { HeaderList } from "#h2/hpack/header-list.ts";
import type { Stream, StreamHandler } from "#h2/connection/stream.ts";
import type { SocketWire } from "#http/live/upgrade.ts";
import type { Problem } from "#http/problem.ts";

/** Answers a CONNECT that has a :protocol. The request that is judged is the GET that HTTP/1.1 would have sent. */
export function serveConnect(
  stream: Stream,
  headers: HeaderList,
  ended: boolean,
  connect: (request: Request, wire: SocketWire) => void,
): StreamHandler {
  const duplex = new StreamDuplex(stream);
  duplex.on("error", () => {}); // a peer that has gone; "close" follows
  if (headers.protocol !== "websocket") refuse(stream, 501, "only :protocol websocket is spoken here");
  else if (ended) refuse(stream, 400, "a WebSocket's stream must stay open");
  else void start(duplex, headers, connect);
  return duplex;
}

async function start(
  duplex: StreamDuplex,
  headers: HeaderList,
  connect: (request: Request, wire: SocketWire) => void,
): Promise<void> {
  const { stream } = duplex;
  // Read all frames that arrived together first: a request that is cancelled at once is then never started.
  await Promise.resolve();
  if (!stream.isOpen) return;
  const gone = new AbortController();
  duplex.once("close", () => gone.abort(new Error("the WebSocket's stream has gone")));
  const fields = new Headers();
  for (const { name, value } of headers.fields) if (!name.startsWith(":")) fields.append(name, value);
  const url = URL.parse(headers.path ?? "/", `${headers.scheme}://${headers.authority}`);
  if (url === null) return refuse(stream, 400, "the address cannot be read");
  connect(new Request(url, { headers: fields, signal: gone.signal }), {
    accept() {
      stream.sendHeaders([[":status", "200"]]);
      return duplex;
    },
    refuse: ({ status, message, headers: more }: Problem) => refuse(stream, status, message, more),
  });
}

function refuse(stream: Stream, status: number, title: string, more: Readonly<Record<string, string>> = {}): void {
  if (!stream.isOpen) return;
  const type: readonly [string, string] = ["content-type", "application/problem+json"];
  stream.sendHeaders([[":status", String(status)], type, ...Object.entries(more)]);
  stream.write(Buffer.from(JSON.stringify({ status, title })), { end: true });
}

/**
 * A stream as a Duplex. What was received and not read counts against the stream's window; a write is done when the
 * stream accepts more. Destroying it resets the stream.
 */
class StreamDuplex extends Duplex implements StreamHandler {
  readonly stream: Stream;
  #unreadBytes = 0;
  #ended = false;
  #writable: (() => void) | undefined;

  constructor(stream: Stream) {
    super({ emitClose: true });
    this.stream = stream;
  }

  onData(_stream: Stream, bytes: Buffer, ended: boolean): void {
    this.#unreadBytes += bytes.length;
    if (bytes.length > 0 && !this.#ended) this.push(Buffer.from(bytes)); // they are borrowed
    if (ended) this.#end();
  }

  onTrailers(): void {
    this.#end();
  }

  onWritable(): void {
    const done = this.#writable;
    this.#writable = undefined;
    done?.();
  }

  onReset(): void {
    this.destroy();
  }

  override _read(): void {
    const bytes = this.#unreadBytes;
    this.#unreadBytes = 0;
    if (bytes > 0 && this.stream.isOpen) this.stream.consume(bytes);
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (this.stream.write(bytes)) done();
    else if (this.stream.isOpen) this.#writable = done;
    else done();
  }

  /** A message's header and its text come corked: one DATA frame for both. */
  override _writev(chunks: { chunk: Buffer }[], done: () => void): void {
    this._write(Buffer.concat(chunks.map(({ chunk }) => chunk)), "utf8", done);
  }

  /** What the peer sends after our end is not handed to us, its own end included: nothing more can be read. */
  override _final(done: () => void): void {
    this.#end();
    if (this.stream.isOpen) this.stream.write(new Uint8Array(), { end: true });
    done();
  }

  override _destroy(_error: Error | null, done: () => void): void {
    // An end that waits for the peer's window is sent later, or given up by the connection's own time limits.
    if (this.stream.isOpen && !this.writableFinished) this.stream.reset(errorCode.cancel);
    this.onWritable();
    done();
  }

  #end(): void {
    if (!this.#ended) this.push(null);
    this.#ended = true;
  }
}
