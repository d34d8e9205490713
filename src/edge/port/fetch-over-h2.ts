/** Web-standard handlers (Request in, Response out) over our HTTP/2; HTTP/1.1 runs the same handlers. */
import type { HeaderList } from "#h2/hpack/header-list.ts";
import { PulledStream } from "#h2/connection/pulled-stream.ts";
import type { Stream, StreamHandler } from "#h2/connection/stream.ts";

export type FetchHandler = (request: Request) => Response | Promise<Response>;

/** Fields of HTTP/1.1 only: HTTP/2 does not have them (RFC 9113 section 8.2.2). */
const hopFields: ReadonlySet<string> = new Set(["connection", "keep-alive", "transfer-encoding", "upgrade"]);

export function serveFetch(
  stream: Stream,
  headers: HeaderList,
  ended: boolean,
  handle: FetchHandler,
  failed: (error: unknown) => void,
): StreamHandler {
  const pulled = new PulledStream(stream, ended);
  void answer(pulled, headers, ended, handle).catch((error: unknown) => {
    // A caller that has disconnected is not a failure of ours.
    if (!pulled.signal.aborted) failed(error);
    if (stream.isOpen) stream.reset();
  });
  return pulled;
}

async function answer(pulled: PulledStream, headers: HeaderList, ended: boolean, handle: FetchHandler): Promise<void> {
  // Read all frames that arrived together first: a request that is cancelled at once is then never started.
  await Promise.resolve();
  if (!pulled.stream.isOpen) return;
  const response = await handle(requestOf(pulled, headers, ended));
  const fields: [string, string][] = [[":status", String(response.status)]];
  for (const [name, value] of response.headers) if (!hopFields.has(name)) fields.push([name, value]);
  const { stream } = pulled;
  if (!stream.isOpen) return await response.body?.cancel();
  if (response.body === null || headers.method === "HEAD") {
    await response.body?.cancel();
    return stream.sendHeaders(fields, true);
  }
  stream.sendHeaders(fields);
  for await (const bytes of response.body) await pulled.write(bytes);
  stream.write(new Uint8Array(), { end: true });
}

function requestOf(pulled: PulledStream, headers: HeaderList, ended: boolean): Request {
  const { method = "GET", scheme = "http", path = "/" } = headers;
  const authority = headers.authority ?? headers.get("host") ?? "localhost";
  const fields = new Headers();
  for (const { name, value } of headers.fields) if (!name.startsWith(":")) fields.append(name, value);
  const hasBody = !ended && method !== "GET" && method !== "HEAD";
  const { signal } = pulled;
  return new Request(new URL(path, `${scheme}://${authority}`), {
    method,
    headers: fields,
    signal,
    ...(hasBody ? { body: ReadableStream.from(pulled), duplex: "half" } : {}),
  });
}
