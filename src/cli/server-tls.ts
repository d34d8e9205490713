/** `fetch` from a server whose certificate this machine does not know, but the caller does: fetch itself cannot. */
import { request as httpsRequest } from "node:https";
import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { X509Certificate } from "node:crypto";
import { connect, type TLSSocket } from "node:tls";
import { Fault } from "#base/fault.ts";

export type Trust =
  /** This very certificate, whatever its names and its signer. Undefined: no certificate is valid any more. */
  | { readonly kind: "same"; readonly certificate: () => string | undefined }
  /** What these have signed, as PEM, for the name that was asked for. */
  | { readonly kind: "signed"; readonly ca: string };

const doing = "trust server";

export async function fetchTrusting(url: string, init: RequestInit, trust: Trust): Promise<Response> {
  const asked = new Request(url, init);
  const socket = await trusted(new URL(url), trust, asked.signal);
  try {
    return await answered(asked, socket);
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/** Nothing is sent before it is known to whom. */
async function trusted({ hostname, port }: URL, trust: Trust, signal: AbortSignal): Promise<TLSSocket> {
  const host = hostname.replace(/^\[|\]$/g, "");
  const socket = connect({
    host,
    port: Number(port || 443),
    ALPNProtocols: ["http/1.1"],
    ...(isIP(host) === 0 && { servername: host }),
    // The very certificate is compared below: its names and its dates do not matter then.
    ...(trust.kind === "same" ? { rejectUnauthorized: false } : { ca: trust.ca }),
  });
  const stop = (): void => void socket.destroy(signal.reason as Error);
  signal.addEventListener("abort", stop, { once: true });
  try {
    await new Promise<void>((resolve, reject) => socket.once("secureConnect", resolve).once("error", reject));
    if (trust.kind === "same") checkSame(socket, trust.certificate());
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

function checkSame(socket: TLSSocket, pem: string | undefined): void {
  if (pem === undefined) throw new Fault("unavailable", doing, { why: "no node is running there" });
  const shown = socket.getPeerX509Certificate();
  if (shown?.raw.equals(new X509Certificate(pem).raw) !== true)
    throw new Fault("invalid", doing, { why: "what answers there does not show the node's certificate" });
}

async function answered(asked: Request, socket: TLSSocket): Promise<Response> {
  const { method, signal } = asked;
  const headers = Object.fromEntries(asked.headers);
  const request = httpsRequest(asked.url, { method, headers, signal, createConnection: () => socket });
  const answer = new Promise<IncomingMessage>((resolve, reject) =>
    request.once("response", resolve).on("error", reject),
  );
  // When that fails, the request does, too, unless there is an answer already.
  if (asked.body) pipeline(Readable.fromWeb(asked.body), request).catch(() => {});
  else request.end();
  const incoming = await answer;
  const { statusCode: status = 0 } = incoming;
  const hasBody = method !== "HEAD" && status !== 204 && status !== 304;
  if (!hasBody) incoming.resume();
  return new Response(hasBody ? (Readable.toWeb(incoming) as ReadableStream<Uint8Array>) : null, { status });
}
