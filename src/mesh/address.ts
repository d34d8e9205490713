/** The address of a member: an IP address as text, and the port of both UDP and TCP. */
import { isIPv4, isIPv6 } from "node:net";
import { Fault } from "#base/fault.ts";

export type Address = { readonly host: string; readonly port: number };

export const addressText = ({ host, port }: Address): string =>
  host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;

export const sameAddress = (a: Address, b: Address): boolean => a.host === b.host && a.port === b.port;

/** In Go's form: 4 bytes, or 16. */
export function ipBytes(host: string): Uint8Array {
  if (isIPv4(host)) return Uint8Array.from(host.split("."), Number);
  if (!isIPv6(host)) throw new Fault("invalid", "write an address", { host, why: "it is not an IP address" });
  const [head = "", tail] = withoutDotted(host).split("::");
  const groups = (text: string): number[] => (text === "" ? [] : text.split(":").map((group) => parseInt(group, 16)));
  const before = groups(head);
  const after = tail === undefined ? [] : groups(tail);
  const all = [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after];
  return Uint8Array.from(all.flatMap((group) => [group >> 8, group & 0xff]));
}

/** Undefined if it is not an address; an IPv4-mapped IPv6 address becomes IPv4. */
export function ipText(bytes: Uint8Array): string | undefined {
  if (bytes.length === 4) return bytes.join(".");
  if (bytes.length !== 16) return undefined;
  const isMapped = bytes.subarray(0, 10).every((byte) => byte === 0) && bytes[10] === 0xff && bytes[11] === 0xff;
  if (isMapped) return bytes.subarray(12).join(".");
  const groups = Array.from({ length: 8 }, (_, i) => ((bytes[2 * i] ?? 0) << 8) | (bytes[2 * i + 1] ?? 0));
  return shortest(groups);
}

/** The same text for all spellings of one address. */
export const normalHost = (host: string): string => {
  const bare = host.split("%")[0] ?? host;
  return isIPv4(bare) || isIPv6(bare) ? (ipText(ipBytes(bare)) ?? bare) : bare;
};

function shortest(groups: readonly number[]): string {
  let best = { at: -1, length: 1 };
  for (let at = 0; at < 8; at += 1) {
    let length = 0;
    while (at + length < 8 && groups[at + length] === 0) length += 1;
    if (length > best.length) best = { at, length };
  }
  const hex = (part: readonly number[]): string => part.map((group) => group.toString(16)).join(":");
  if (best.at < 0) return hex(groups);
  return `${hex(groups.slice(0, best.at))}::${hex(groups.slice(best.at + best.length))}`;
}

/** "::ffff:1.2.3.4" -> "::ffff:102:304" */
function withoutDotted(host: string): string {
  const at = host.lastIndexOf(":") + 1;
  const [a = 0, b = 0, c = 0, d] = host.slice(at).split(".").map(Number);
  if (d === undefined) return host;
  return `${host.slice(0, at)}${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
}
