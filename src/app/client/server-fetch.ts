/**
 * What `fetch` itself cannot do: trust a certificate that this machine does not know, show a client certificate, use a
 * Unix socket.
 */
import { request as httpRequest, type IncomingMessage } from "node:http";
import { connect as connectSocket, isIP, type Socket } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { X509Certificate } from "node:crypto";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { Fault } from "#base/fault.ts";

export type Trust =
  /** Trusts exactly this certificate, whatever its names and its signer. Undefined: trusts none any more. */
  | { readonly kind: "same"; readonly certificate: () => string | undefined }
  /** Trusts these authorities (PEM), for the requested name; undefined: the machine's own authorities. */
  | { readonly kind: "signed"; readonly ca: string | undefined };

/** Certificate and private key as PEM. */
export type ClientCertificate = { readonly cert: string; readonly key: string };

const doing = "trust server";

export async function fetchOverTls(
  url: string,
  init: RequestInit,
  tls: { readonly trust: Trust; readonly client?: ClientCertificate | undefined },
): Promise<Response> {
  const request = new Request(url, init);
  return await answerOver(await connectTrusted(new URL(url), tls, request.signal), request);
}

export async function fetchOverUnixSocket(path: string, url: string, init: RequestInit): Promise<Response> {
  const request = new Request(url, init);
  return await answerOver(await connected(connectSocket(path), "connect", request.signal), request);
}

/** Checks the server's certificate before anything is sent. */
async function connectTrusted(
  { hostname, port }: URL,
  { trust, client }: { readonly trust: Trust; readonly client?: ClientCertificate | undefined },
  signal: AbortSignal,
): Promise<TLSSocket> {
  const host = hostname.replace(/^\[|\]$/g, "");
  const socket = connectTls({
    host,
    port: Number(port || 443),
    ALPNProtocols: ["http/1.1"],
    ...(isIP(host) === 0 && { servername: host }),
    // The whole certificate is compared below, so its names and dates do not matter here.
    ...(trust.kind === "same" ? { rejectUnauthorized: false } : trust.ca !== undefined && { ca: trust.ca }),
    ...client,
  });
  await connected(socket, "secureConnect", signal);
  try {
    if (trust.kind === "same") checkSame(socket, trust.certificate());
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

async function connected<S extends Socket>(
  socket: S,
  event: "connect" | "secureConnect",
  signal: AbortSignal,
): Promise<S> {
  const stop = (): void => void socket.destroy(signal.reason as Error);
  signal.addEventListener("abort", stop, { once: true });
  try {
    await new Promise<void>((resolve, reject) => socket.once(event, () => resolve()).once("error", reject));
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

async function answerOver(socket: Socket, wanted: Request): Promise<Response> {
  try {
    return await answered(wanted, socket);
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

async function answered(wanted: Request, socket: Socket): Promise<Response> {
  const { method, signal } = wanted;
  const { host, pathname, search } = new URL(wanted.url);
  const headers = { host, ...Object.fromEntries(wanted.headers) };
  const path = `${pathname}${search}`;
  const request = httpRequest({ path, method, headers, signal, createConnection: () => socket });
  const answer = new Promise<IncomingMessage>((resolve, reject) =>
    request.once("response", resolve).on("error", reject),
  );
  // A failed upload fails the request, unless the answer has arrived already.
  if (wanted.body) pipeline(Readable.fromWeb(wanted.body), request).catch(() => {});
  else request.end();
  const incoming = await answer;
  const { statusCode: status = 0 } = incoming;
  const hasBody = method !== "HEAD" && status !== 204 && status !== 304;
  if (!hasBody) incoming.resume();
  return new Response(hasBody ? (Readable.toWeb(incoming) as ReadableStream<Uint8Array>) : null, { status });
}
