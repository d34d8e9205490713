/**
 * What proves that this cluster gave something out: tokens of jobs, and addresses that work without a token.
 *
 * SV1 A token or address that was changed, that has ended, or that another cluster gave out opens nothing.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { jwtVerify, SignJWT } from "jose";
import { allTenants } from "#access/principal.ts";
import type { RecordStore } from "#records/records.ts";

/** Which key is used, and where it is kept, is not this file's concern: all nodes of a cluster need the same. */
export type Seal = {
  token(claims: Readonly<Record<string, unknown>>, untilMs: number): Promise<string>;
  /** The claims; undefined if the token is not ours or has ended. */
  open(token: string): Promise<Readonly<Record<string, unknown>> | undefined>;
  /** A short proof that this cluster wrote the text. */
  mark(text: string): string;
  isMark(text: string, mark: string): boolean;
};

const issuer = "millrace-ci";
const algorithm = "HS256";
const markLength = 43;

/** Of the whole cluster: the first node that needs it makes it, and all others find it. */
export async function sharedKey(records: Pick<RecordStore, "create">): Promise<Uint8Array> {
  const id = { tenant: allTenants, kind: "ci.seal-key", name: "1" };
  const { record } = await records.create(id, randomBytes(32).toString("base64url"));
  return Buffer.from(record.document, "base64url");
}

export function sealWith(key: Uint8Array, wallMs: () => number): Seal {
  const markOf = (text: string): string => createHmac("sha256", key).update("mark\0").update(text).digest("base64url");
  return {
    token: (claims, untilMs) =>
      new SignJWT({ ...claims })
        .setProtectedHeader({ alg: algorithm, typ: "JWT" })
        .setIssuer(issuer)
        .setIssuedAt(Math.floor(wallMs() / 1_000))
        .setExpirationTime(Math.floor(untilMs / 1_000))
        .sign(key),
    async open(token) {
      try {
        const currentDate = new Date(wallMs());
        const { payload } = await jwtVerify(token, key, { issuer, algorithms: [algorithm], currentDate });
        return payload;
      } catch {
        return undefined;
      }
    },
    mark: markOf,
    isMark: (text, mark) => mark.length === markLength && timingSafeEqual(Buffer.from(markOf(text)), Buffer.from(mark)),
  };
}
