/** The few S3 calls that we need: signed, retried where that is safe, with our own faults. */
import { hash } from "node:crypto";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import type { Random } from "#base/random.ts";
import { bytesOf, createHttpCaller, dropBody, textOf, type HttpAnswer, type HttpCaller } from "./http-call.ts";
import { retrying, retryPolicyDefault, type RetryPolicy } from "#blobs/tiers/retry.ts";
import { escaped, signedHeaders, type S3Credentials } from "./sigv4.ts";
import { tagOf, tagsOf } from "./s3-xml.ts";

export type S3Options = {
  readonly clock: Clock;
  readonly random: Random;
  /** Such as https://s3.eu-central-1.amazonaws.com; the bucket is put into the path unless `virtualHost` is set. */
  readonly endpoint: string;
  readonly region: string;
  readonly bucket: string;
  readonly credentials: S3Credentials;
  readonly virtualHost?: boolean;
  readonly connectionsMax?: number;
  readonly idleMs?: number;
  readonly retry?: RetryPolicy;
};

export type S3Object = { readonly etag: string; readonly sizeBytes: number; readonly ageMs: number };

export type S3Condition = { readonly ifMatch?: string; readonly ifNoneMatch?: "*" };

export type S3Client = Disposable & {
  /** Undefined if there is no such object. */
  head(key: string): Promise<S3Object | undefined>;
  get(
    key: string,
    offset?: number,
    length?: number,
  ): Promise<(S3Object & { readonly body: AsyncIterable<Uint8Array> }) | undefined>;
  /** The new object's etag, or "conflict" if the condition does not hold. */
  put(key: string, bytes: Uint8Array, condition?: S3Condition, sha256?: string): Promise<{ etag: string } | "conflict">;
  /** Resets the object's age, for buckets that expire old objects. False if there is no such object. */
  refresh(key: string): Promise<boolean>;
  remove(key: string): Promise<void>;
  /** In the order of keys. */
  list(prefix: string, after: string | undefined, limit: number): Promise<S3Page>;
  beginParts(key: string): Promise<string>;
  putPart(key: string, uploadId: string, number: number, bytes: Uint8Array): Promise<string>;
  finishParts(key: string, uploadId: string, etags: readonly string[]): Promise<void>;
  abandonParts(key: string, uploadId: string): Promise<void>;
};

export type S3Page = { readonly keys: readonly string[]; readonly isLast: boolean };

type Ask = {
  readonly method: string;
  readonly key?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  /** Of the body, if it is known already. */
  readonly sha256?: string;
  /** Statuses that are answers; every other status is a fault. */
  readonly takes: readonly number[];
};

const emptySha256 = hash("sha256", "", "hex");

export function createS3Client(options: S3Options): S3Client {
  const { clock, random, retry: policy = retryPolicyDefault } = options;
  const caller = createHttpCaller({ connectionsMax: options.connectionsMax ?? 64, idleMs: options.idleMs ?? 30_000 });
  const ask = (one: Ask): Promise<HttpAnswer> =>
    retrying({ clock, random, policy }, () => askOnce(caller, options, one));
  const askForText = async (one: Ask): Promise<string> => {
    // The body is part of the attempt: an answer that breaks off is requested again.
    const attempt = async (): Promise<string> => await textOf(await askOnce(caller, options, one));
    return await retrying({ clock, random, policy }, attempt);
  };

  return {
    async head(key) {
      const answer = await ask({ method: "HEAD", key, takes: [200, 404] });
      await dropBody(answer);
      return answer.status === 404 ? undefined : objectOf(answer);
    },
    async get(key, offset = 0, length) {
      const isPart = offset > 0 || length !== undefined;
      const headers = isPart ? { range: `bytes=${offset}-${length === undefined ? "" : offset + length - 1}` } : {};
      const answer = await ask({ method: "GET", key, headers, takes: [200, 206, 404, 416] });
      if (answer.status === 200 && isPart)
        throw new Fault("unavailable", "call S3", { why: "the server ignores ranges" });
      if (answer.status < 300) return { ...objectOf(answer), body: answer.body };
      await beThere(answer);
      return undefined;
    },
    async put(key, bytes, { ifMatch, ifNoneMatch } = {}, sha256) {
      const headers = {
        ...(ifMatch !== undefined && { "if-match": ifMatch }),
        ...(ifNoneMatch !== undefined && { "if-none-match": ifNoneMatch }),
      };
      const isConditional = ifMatch !== undefined || ifNoneMatch !== undefined;
      const takes = isConditional ? [200, 201, 204, 404, 409, 412] : [200, 201, 204];
      const answer = await ask({ method: "PUT", key, headers, body: bytes, ...(sha256 && { sha256 }), takes });
      await beThere(answer);
      return answer.status >= 400 ? "conflict" : { etag: header(answer, "etag") };
    },
    async refresh(key) {
      const source = { "x-amz-copy-source": `/${options.bucket}/${key.split("/").map(escaped).join("/")}` };
      const headers = { ...source, "x-amz-metadata-directive": "REPLACE" };
      const answer = await ask({ method: "PUT", key, headers, takes: [200, 404] });
      const text = await textOf(answer);
      // S3 may answer 200 to a copy and report the failure in the body.
      if (answer.status === 200 && text.includes("<Error>")) throw new Fault("unavailable", "refresh in S3", { key });
      return answer.status === 200;
    },
    async remove(key) {
      await dropBody(await ask({ method: "DELETE", key, takes: [200, 204, 404] }));
    },
    async list(prefix, after, limit) {
      const query = {
        "list-type": "2",
        prefix,
        "max-keys": String(limit),
        "encoding-type": "url",
        ...(after !== undefined && { "start-after": after }),
      };
      const text = await askForText({ method: "GET", query, takes: [200] });
      const keys = tagsOf(text, "Key").map((key) => decodeURIComponent(key.replaceAll("+", " ")));
      return { keys, isLast: tagOf(text, "IsTruncated") !== "true" };
    },
    async beginParts(key) {
      const text = await askForText({ method: "POST", key, query: { uploads: "" }, takes: [200] });
      const uploadId = tagOf(text, "UploadId");
      if (uploadId === undefined) throw new Fault("unavailable", "begin an upload to S3", { why: "no UploadId" });
      return uploadId;
    },
    async putPart(key, uploadId, number, bytes) {
      const query = { partNumber: String(number), uploadId };
      const answer = await ask({ method: "PUT", key, query, body: bytes, takes: [200] });
      await dropBody(answer);
      return header(answer, "etag");
    },
    async finishParts(key, uploadId, etags) {
      const parts = etags.map((etag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${etag}</ETag></Part>`);
      const body = Buffer.from(`<CompleteMultipartUpload>${parts.join("")}</CompleteMultipartUpload>`);
      const text = await askForText({ method: "POST", key, query: { uploadId }, body, takes: [200] });
      if (text.includes("<Error>"))
        throw new Fault("unavailable", "finish an upload to S3", { code: tagOf(text, "Code") });
    },
    async abandonParts(key, uploadId) {
      await dropBody(await ask({ method: "DELETE", key, query: { uploadId }, takes: [200, 204, 404] }));
    },
    [Symbol.dispose]: () => caller[Symbol.dispose](),
  };
}

/** If the bucket does not exist, a 404 says nothing about the object. */
async function beThere(answer: HttpAnswer): Promise<void> {
  const code = answer.status === 404 ? tagOf(await textOf(answer, 64 * 1024), "Code") : await dropBody(answer);
  if (code === "NoSuchBucket") throw new Fault("unavailable", "call S3", { code });
}

async function askOnce(caller: HttpCaller, options: S3Options, one: Ask): Promise<HttpAnswer> {
  const { method, body } = one;
  const url = urlOf(options, one);
  const payloadSha256 = body ? (one.sha256 ?? hash("sha256", body, "hex")) : emptySha256;
  const headers = signedHeaders(
    { method, url, headers: one.headers ?? {}, payloadSha256 },
    { region: options.region, credentials: options.credentials, nowMs: options.clock.wallMs() },
  );
  const answer = await caller.call({ method, url, headers, ...(body && { body }) });
  if (one.takes.includes(answer.status)) return answer;
  const text = (await bytesOf(answer.body, 64 * 1024).catch(() => "")).toString();
  throw faultOf(answer.status, tagOf(text, "Code"), method, one.key);
}

function urlOf({ endpoint, bucket, virtualHost = false }: S3Options, { key, query = {} }: Ask): URL {
  const url = new URL(endpoint);
  const path = [...(virtualHost ? [] : [bucket]), ...(key === undefined ? [] : key.split("/"))];
  if (virtualHost) url.host = `${bucket}.${url.host}`;
  url.pathname = `${url.pathname.replace(/\/$/, "")}/${path.map(escaped).join("/")}`;
  url.search = Object.entries(query)
    .map(([name, value]) => `${escaped(name)}=${escaped(value)}`)
    .join("&");
  return url;
}

function faultOf(status: number, code: string | undefined, method: string, key: string | undefined): Fault {
  const facts = { status, code, method, key };
  const isPassing = status >= 500 && status !== 501 && status !== 507;
  // 409: another client is writing the same key.
  if (isPassing || [408, 409, 429].includes(status) || code === "RequestTimeout")
    return new Fault("unavailable", "call S3", facts);
  if (status === 404) return new Fault("not-found", "call S3", facts);
  return new Fault(status === 507 ? "exhausted" : "internal", "call S3", facts);
}

function objectOf(answer: HttpAnswer): S3Object {
  const now = Date.parse(header(answer, "date"));
  const changed = Date.parse(header(answer, "last-modified"));
  const total = /\/(\d+)$/.exec(header(answer, "content-range"))?.[1] ?? header(answer, "content-length");
  // By the server's clock, because ours may be wrong.
  const ageMs = Number.isNaN(now) || Number.isNaN(changed) ? 0 : Math.max(0, now - changed);
  return { etag: header(answer, "etag"), sizeBytes: Number(total), ageMs };
}

function header({ headers }: HttpAnswer, name: string): string {
  const value = headers[name];
  return (Array.isArray(value) ? value[0] : value) ?? "";
}
