/** Key-encryption keys as text: one a line, `<id> <32 bytes in base64url>`; the first seals, all of them open. */
import { hash, randomBytes } from "node:crypto";
import { Fault } from "#base/fault.ts";
import { keyBytes, type WrappingKey } from "./envelope.ts";

/** Never empty. */
export type KeyList = readonly [WrappingKey, ...WrappingKey[]];

const keysMax = 100;
const idPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** `where` names the source in errors, which never show what it holds. */
export function parseKeys(text: string, where: string): KeyList {
  const wrong = (why: string): Fault => new Fault("invalid", "read the vault's keys", { where, why });
  const rows = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
  if (rows.length > keysMax) throw wrong(`at most ${keysMax} keys`);
  const keys = rows.map((row, i): WrappingKey => {
    const [id = "", key = "", ...more] = row.split(/\s+/);
    const bytes = Buffer.from(key, "base64url");
    if (id.startsWith(ownPrefix) && bytes.length === keyBytes && id !== idOf(bytes))
      throw wrong(`line ${i + 1}: the key is not the one that its id names: bring back the file as it was`);
    if (!idPattern.test(id) || bytes.length !== keyBytes || more.length > 0)
      throw wrong(`line ${i + 1}: write a key as "<id> <32 bytes in base64>"; make one with: millrace secret new-key`);
    return { id, bytes };
  });
  const [first, ...others] = keys;
  if (!first) throw wrong("there is no key; make one with: millrace secret new-key");
  if (new Set(keys.map(({ id }) => id)).size < keys.length) throw wrong("two keys have the same id");
  return [first, ...others];
}

/** Ids that the program makes name their key, so that a damaged key seals nothing. */
const ownPrefix = "k.";
const idOf = (key: Uint8Array): string => `${ownPrefix}${hash("sha256", key).slice(0, 12)}`;

export function newKeyLine(): string {
  const key = randomBytes(keyBytes);
  return `${idOf(key)} ${key.toString("base64url")}`;
}
