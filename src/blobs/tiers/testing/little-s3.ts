/**
 * A strict S3 server for tests: it checks signatures, payload hashes, conditions and part sizes, and misbehaves on
 * request. The tier is also tested with real S3 servers.
 */
import { createHash, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Random } from "#base/random.ts";
import { createS3Client, type S3Client, type S3Options } from "#blobs/tiers/s3/s3-client.ts";
import { realClock } from "#testing/real-clock.ts";
import { signedHeaders, type S3Credentials } from "#blobs/tiers/s3/sigv4.ts";

export type Misbehaviour =
  | { readonly kind: "status"; readonly status: number; readonly code?: string }
  | { readonly kind: "hang" }
  | { readonly kind: "reset" }
  /** Cuts off the body of an answer. */
  | { readonly kind: "truncate" }
  | { readonly kind: "lie" };

type Stored = { readonly bytes: Buffer; readonly etag: string; changedAtMs: number };

type Upload = { readonly key: string; readonly parts: Map<number, { readonly bytes: Buffer; readonly etag: string }> };

export const littleCredentials: S3Credentials = { accessKeyId: "mill", secretAccessKey: "race/secret+0" };

/** A client with short retries. */
export const littleClient = (s3: LittleS3, more: Partial<S3Options> = {}): S3Client =>
  createS3Client({
    clock: realClock,
    random: new Random(1),
    endpoint: s3.endpoint,
    region: "here",
    bucket: "mill",
    credentials: littleCredentials,
    retry: { attemptsMax: 3, delayMs: 1, delayMsMax: 4 },
    ...more,
  });

export class LittleS3 implements AsyncDisposable {
  readonly objects = new Map<string, Stored>();
  readonly uploads = new Map<string, Upload>();
  /** The requests, as "METHOD key". */
  readonly asked: string[] = [];
  /** By key: how many bytes of it were sent. */
  readonly sent = new Map<string, number>();
  readonly #server: Server;
  readonly #partBytesMin: number;
  /** Called for every request with a valid signature. */
  misbehave: (method: string, key: string) => Misbehaviour | undefined = () => undefined;
  nowMs: () => number = () => Date.now();

  private constructor(server: Server, partBytesMin: number) {
    this.#server = server;
    this.#partBytesMin = partBytesMin;
  }

  static async start({ partBytesMin = 5 * 1024 * 1024 } = {}): Promise<LittleS3> {
    const server = createServer();
    const s3 = new LittleS3(server, partBytesMin);
    server.on("request", (request: IncomingMessage, response: ServerResponse) => void s3.#serve(request, response));
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    return s3;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((closed) => this.#server.close(closed));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    try {
      for await (const part of request) parts.push(part as Buffer);
    } catch {
      return; // the client has gone
    }
    const body = Buffer.concat(parts);
    const url = new URL(request.url ?? "/", this.endpoint);
    const { method = "" } = request;
    const [, bucket = "", ...rest] = url.pathname.split("/").map(decodeURIComponent);
    const key = rest.join("/");
    const refused = refusalOf(request, url, body);
    if (refused) return fail(response, 403, refused);
    if (bucket !== "mill") return fail(response, 404, "NoSuchBucket");
    this.asked.push(`${method} ${key}`);
    const wrong = this.misbehave(method, key);
    if (wrong?.kind === "hang") return;
    if (wrong?.kind === "reset") return void request.socket.destroy();
    if (wrong?.kind === "status") return fail(response, wrong.status, wrong.code ?? "InternalError");
    if (key === "") return this.#list(url, response);
    if (url.searchParams.has("uploads")) return this.#begin(key, response);
    if (url.searchParams.has("uploadId")) return this.#part(method, key, url, body, response);
    if (method === "GET" || method === "HEAD") return this.#get(key, request, response, wrong?.kind);
    if (method === "PUT") return this.#put(key, request, body, response);
    if (method === "DELETE") {
      this.objects.delete(key);
      return void response.writeHead(204).end();
    }
    fail(response, 405, "MethodNotAllowed");
  }

  #get(key: string, request: IncomingMessage, response: ServerResponse, wrong: Misbehaviour["kind"] | undefined): void {
    const stored = this.objects.get(key);
    if (!stored) return fail(response, 404, "NoSuchKey");
    const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "") ?? [];
    const from = Number(first ?? 0);
    const to = Math.min(last ? Number(last) + 1 : stored.bytes.length, stored.bytes.length);
    if (from > 0 && from >= stored.bytes.length) return fail(response, 416, "InvalidRange");
    const bytes = wrong === "lie" ? Buffer.from(stored.bytes.map((byte) => byte ^ 1)) : stored.bytes.subarray(from, to);
    const isPart = first !== undefined;
    if (request.method === "GET") this.sent.set(key, (this.sent.get(key) ?? 0) + bytes.length);
    response.writeHead(isPart ? 206 : 200, {
      date: new Date(this.nowMs()).toUTCString(),
      etag: stored.etag,
      "last-modified": new Date(stored.changedAtMs).toUTCString(),
      "content-length": bytes.length,
      ...(isPart && { "content-range": `bytes ${from}-${to - 1}/${stored.bytes.length}` }),
    });
    if (request.method === "HEAD") return void response.end();
    if (wrong !== "truncate") return void response.end(bytes);
    response.write(bytes.subarray(0, bytes.length >> 1), () => request.socket.destroy());
  }

  #put(key: string, request: IncomingMessage, body: Buffer, response: ServerResponse): void {
    const stored = this.objects.get(key);
    if (request.headers["x-amz-copy-source"] !== undefined) {
      if (!stored) return fail(response, 404, "NoSuchKey");
      stored.changedAtMs = this.nowMs();
      return void response.end("<CopyObjectResult></CopyObjectResult>");
    }
    if (request.headers["if-none-match"] === "*" && stored) return fail(response, 412, "PreconditionFailed");
    const { "if-match": ifMatch } = request.headers;
    if (ifMatch !== undefined && !stored) return fail(response, 404, "NoSuchKey");
    if (ifMatch !== undefined && stored?.etag !== ifMatch) return fail(response, 412, "PreconditionFailed");
    response.writeHead(200, { etag: this.#keep(key, body) }).end();
  }

  #keep(key: string, bytes: Buffer): string {
    const etag = `"${createHash("md5").update(bytes).digest("hex")}"`;
    this.objects.set(key, { bytes, etag, changedAtMs: this.nowMs() });
    return etag;
  }

  #begin(key: string, response: ServerResponse): void {
    const uploadId = randomUUID();
    this.uploads.set(uploadId, { key, parts: new Map() });
    response.end(`<InitiateMultipartUploadResult><UploadId>${uploadId}</UploadId></InitiateMultipartUploadResult>`);
  }

  #part(method: string, key: string, url: URL, body: Buffer, response: ServerResponse): void {
    const uploadId = url.searchParams.get("uploadId") ?? "";
    const upload = this.uploads.get(uploadId);
    if (upload?.key !== key) return fail(response, 404, "NoSuchUpload");
    if (method === "DELETE") {
      this.uploads.delete(uploadId);
      return void response.writeHead(204).end();
    }
    if (method === "PUT") {
      const etag = `"${createHash("md5").update(body).digest("hex")}"`;
      upload.parts.set(Number(url.searchParams.get("partNumber")), { bytes: body, etag });
      return void response.writeHead(200, { etag }).end();
    }
    const named = Array.from(
      body.toString().matchAll(/<PartNumber>(\d+)<\/PartNumber><ETag>([^<]*)<\/ETag>/g),
      ([, number, etag]) => ({ part: upload.parts.get(Number(number)), etag }),
    );
    if (named.length === 0 || named.some(({ part, etag }) => part?.etag !== etag))
      return fail(response, 400, "InvalidPart");
    if (named.slice(0, -1).some(({ part }) => (part?.bytes.length ?? 0) < this.#partBytesMin))
      return fail(response, 400, "EntityTooSmall");
    this.#keep(key, Buffer.concat(named.flatMap(({ part }) => (part ? [part.bytes] : []))));
    this.uploads.delete(uploadId);
    response.end("<CompleteMultipartUploadResult></CompleteMultipartUploadResult>");
  }

  #list(url: URL, response: ServerResponse): void {
    const { searchParams: asked } = url;
    const [prefix, after] = [asked.get("prefix") ?? "", asked.get("start-after") ?? ""];
    const limit = Math.min(1_000, Number(asked.get("max-keys") ?? 1_000));
    // S3 orders keys by their bytes.
    const all = [...this.objects.keys()].filter((key) => key.startsWith(prefix) && bytewise(key, after) > 0);
    const keys = all.toSorted(bytewise).slice(0, limit);
    const listed = keys.map((key) => `<Contents><Key>${encodeURIComponent(key)}</Key></Contents>`).join("");
    response.end(
      `<ListBucketResult><IsTruncated>${keys.length < all.length}</IsTruncated>${listed}</ListBucketResult>`,
    );
  }
}

const bytewise = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

function refusalOf(request: IncomingMessage, url: URL, body: Buffer): string | undefined {
  const given = request.headers.authorization ?? "";
  const names = /SignedHeaders=([^,]+),/.exec(given)?.[1]?.split(";") ?? [];
  const payloadSha256 = String(request.headers["x-amz-content-sha256"]);
  const headers = Object.fromEntries(
    names.filter((name) => !computed.has(name)).map((name) => [name, String(request.headers[name])]),
  );
  const time = String(request.headers["x-amz-date"]);
  const nowMs = Date.parse(time.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));
  if (!(Math.abs(Date.now() - nowMs) < 900_000)) return "RequestTimeTooSkewed";
  const signable = { method: request.method ?? "", url, headers, payloadSha256 };
  const wanted = signedHeaders(signable, { region: "here", credentials: littleCredentials, nowMs });
  if (wanted["authorization"] !== given) return "SignatureDoesNotMatch";
  const got = createHash("sha256").update(body).digest("hex");
  return got === payloadSha256 ? undefined : "XAmzContentSHA256Mismatch";
}

const computed: ReadonlySet<string> = new Set(["host", "x-amz-content-sha256", "x-amz-date"]);

function fail(response: ServerResponse, status: number, code: string): void {
  response.writeHead(status, { "content-type": "application/xml" }).end(`<Error><Code>${code}</Code></Error>`);
}
