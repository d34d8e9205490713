/** Signs requests with AWS Signature Version 4. Pure: the caller passes the time. */
import { createHmac, hash } from "node:crypto";

export type S3Credentials = {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
};

export type Signable = {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** In hexadecimal, or "UNSIGNED-PAYLOAD". */
  readonly payloadSha256: string;
};

export type SigningScope = { readonly region: string; readonly credentials: S3Credentials; readonly nowMs: number };

/** All headers to send, including the signature. */
export function signedHeaders(request: Signable, { region, credentials, nowMs }: SigningScope): Record<string, string> {
  const time = new Date(nowMs).toISOString().replaceAll(/[-:]|\.\d{3}/g, "");
  const scope = `${time.slice(0, 8)}/${region}/s3/aws4_request`;
  const headers: Record<string, string> = {
    ...request.headers,
    host: request.url.host,
    "x-amz-content-sha256": request.payloadSha256,
    "x-amz-date": time,
    ...(credentials.sessionToken !== undefined && { "x-amz-security-token": credentials.sessionToken }),
  };
  const names = Object.keys(headers).toSorted();
  const canonical = [
    request.method,
    canonicalPath(request.url),
    canonicalQuery(request.url),
    ...names.map((name) => `${name}:${headers[name]?.trim().replaceAll(/\s+/g, " ")}`),
    "",
    names.join(";"),
    request.payloadSha256,
  ].join("\n");
  const toSign = ["AWS4-HMAC-SHA256", time, scope, hash("sha256", canonical, "hex")].join("\n");
  const key = [time.slice(0, 8), region, "s3", "aws4_request"].reduce<string | Buffer>(
    (secret, part) => createHmac("sha256", secret).update(part).digest(),
    `AWS4${credentials.secretAccessKey}`,
  );
  const signature = createHmac("sha256", key).update(toSign).digest("hex");
  headers["authorization"] =
    `AWS4-HMAC-SHA256 Credential=${credentials.accessKeyId}/${scope}, ` +
    `SignedHeaders=${names.join(";")}, Signature=${signature}`;
  return headers;
}

/** S3's form of percent-encoding: everything but letters, digits and -._~, once. */
export const escaped = (text: string): string =>
  encodeURIComponent(text).replaceAll(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);

const canonicalPath = (url: URL): string =>
  url.pathname
    .split("/")
    .map((part) => escaped(decodeURIComponent(part)))
    .join("/");

const canonicalQuery = (url: URL): string =>
  Array.from(url.searchParams, ([name, value]) => `${escaped(name)}=${escaped(value)}`)
    .toSorted()
    .join("&");
