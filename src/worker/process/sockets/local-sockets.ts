/** Which local sockets are connected to each other, and who owns them, from Linux's /proc/net. */
import { readFile } from "node:fs/promises";
import { isIPv4 } from "node:net";
import { endianness } from "node:os";

export type ConnectionEnds = {
  readonly localAddress: string;
  readonly localPort: number;
  readonly remoteAddress: string;
  readonly remotePort: number;
};

/** `inode` is 0 if no process holds the socket any more; then the uid means nothing. */
export type LocalSocket = { readonly uid: number; readonly inode: number };

export type LocalSockets = {
  /** The socket at the other end of a connection of this process; undefined if it is not on this machine. */
  otherEndOf(ends: ConnectionEnds): LocalSocket | undefined;
};

/** Sockets in this process's network namespace. Rejects if the system does not list them. */
export async function localSockets(): Promise<LocalSockets> {
  const [v4, v6] = await Promise.all([
    readFile("/proc/net/tcp", "latin1"),
    readFile("/proc/net/tcp6", "latin1").catch(withoutIPv6),
  ]);
  return socketsIn(`${v4}\n${v6}`);
}

function withoutIPv6(error: NodeJS.ErrnoException): string {
  if (error.code === "ENOENT") return "";
  throw error;
}

/** Parses the lines of both files. */
export function socketsIn(table: string): LocalSockets {
  const found = new Map<string, LocalSocket>();
  for (const line of table.split("\n")) {
    const [, local, remote, , , , , uid, , inode] = line.trim().split(/\s+/);
    if (inode !== undefined && inode !== "inode")
      found.set(`${local} ${remote}`, { uid: Number(uid), inode: Number(inode) });
  }
  return {
    otherEndOf({ localAddress, localPort, remoteAddress, remotePort }) {
      const [ours, theirs] = [bytesOf(localAddress), bytesOf(remoteAddress)];
      for (const form of [asIs, mapped]) {
        const key = `${hexOf(form(theirs), remotePort)} ${hexOf(form(ours), localPort)}`;
        const socket = found.get(key);
        if (socket) return socket;
      }
      return undefined;
    },
  };
}

const asIs = (bytes: readonly number[]): readonly number[] => bytes;

/** A program may reach an IPv4 address through an IPv6 socket, as Java programs do. */
const mapped = (bytes: readonly number[]): readonly number[] =>
  bytes.length === 4 ? [...Array<number>(10).fill(0), 0xff, 0xff, ...bytes] : bytes;

/** Four bytes or sixteen; an IPv4 address in IPv6 form is four. */
function bytesOf(address: string): readonly number[] {
  if (isIPv4(address)) return address.split(".").map(Number);
  const plain = URL.parse(`http://[${address.replace(/%.*/, "")}]/`)?.hostname.slice(1, -1) ?? "::";
  const [head = "", tail] = plain.split("::");
  const words = (text: string): readonly number[] =>
    text === "" ? [] : text.split(":").map((word) => Number.parseInt(word, 16));
  const [first, last] = [words(head), words(tail ?? "")];
  const all =
    tail === undefined ? first : [...first, ...Array<number>(8 - first.length - last.length).fill(0), ...last];
  const bytes = all.flatMap((word) => [word >> 8, word & 0xff]);
  const isMapped = bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 0xff && bytes[11] === 0xff;
  return isMapped ? bytes.slice(12) : bytes;
}

const isLittle = endianness() === "LE";

/** The kernel's format: groups of four bytes as numbers in the machine's byte order. */
function hexOf(bytes: readonly number[], port: number): string {
  const hex = (byte: number): string => byte.toString(16).padStart(2, "0");
  let text = "";
  for (let at = 0; at < bytes.length; at += 4) {
    const word = bytes.slice(at, at + 4).map(hex);
    text += (isLittle ? word.toReversed() : word).join("");
  }
  return `${text}:${port.toString(16).padStart(4, "0")}`.toUpperCase();
}
