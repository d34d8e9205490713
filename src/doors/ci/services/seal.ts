/**
 * What proves that this cluster gave something out: tokens of jobs, and addresses that work without a token.
 *
 * SV1 A token or address that was changed, that has ended, or that another cluster gave out opens nothing.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { jwtVerify, SignJWT } from "jose";

/** Which key is used, and where it is kept, is not this file's concern: all nodes of a cluster need the same. */
export type Seal = {
  token(claims: Readonly<Record<string, unknown>>, untilMs: number): Promise<string>;
  /** The claims; undefined if the token is not ours or has ended. */
  open(token: string): Promise<Readonly<Record<string, unknown>> | undefined>;
  /** A short proof that this cluster wrote the text. */
  mark(text: string): Promise<string>;
  isMark(text: string, mark: string): Promise<boolean>;
};

const issuer = "millrace-ci";
const algorithm = "HS256";
const markLength = 43;

/** The key is asked for when it is first needed, and again as long as it cannot be had. */
export function sealWith(keyOf: () => Promise<Uint8Array>, wallMs: () => number): Seal {
  let known: Uint8Array | undefined;
  const key = async (): Promise<Uint8Array> => (known ??= await keyOf());
  const markOf = async (text: string): Promise<string> =>
    createHmac("sha256", await key())
      .update("mark\0")
      .update(text)
      .digest("base64url");
  return {
    token: async (claims, untilMs) =>
      await new SignJWT({ ...claims })
        .setProtectedHeader({ alg: algorithm, typ: "JWT" })
        .setIssuer(issuer)
        .setIssuedAt(Math.floor(wallMs() / 1_000))
        .setExpirationTime(Math.floor(untilMs / 1_000))
        .sign(await key()),
    async open(token) {
      const secret = await key();
      try {
        const currentDate = new Date(wallMs());
        const { payload } = await jwtVerify(token, secret, { issuer, algorithms: [algorithm], currentDate });
        return payload;
      } catch {
        return undefined;
      }
    },
    mark: markOf,
    isMark: async (text, mark) =>
      mark.length === markLength && timingSafeEqual(Buffer.from(await markOf(text)), Buffer.from(mark)),
  };
}
