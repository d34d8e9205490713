/** Which sockets of this machine are connected to which, and whose they are, as Linux tells it in /proc/net. */
import { readFile } from "node:fs/promises";
import { isIPv4 } from "node:net";
import { endianness } from "node:os";

export type ConnectionEnds = {
  readonly localAddress: string;
  readonly localPort: number;
  readonly remoteAddress: string;
  readonly remotePort: number;
};

/** `inode` is 0 for one that no process holds any more; its uid says nothing then. */
export type LocalSocket = { readonly uid: number; readonly inode: number };

export type LocalSockets = {
  /** The socket at the other end of a connection that this process has; undefined where it is not on this machine. */
  otherEndOf(ends: ConnectionEnds): LocalSocket | undefined;
};

/** Of this process's network. Rejects where the system does not tell. */
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

/** From the lines of both files. */
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

/** A program may reach an address of IPv4 through a socket of IPv6, as Java's do. */
const mapped = (bytes: readonly number[]): readonly number[] =>
  bytes.length === 4 ? [...Array<number>(10).fill(0), 0xff, 0xff, ...bytes] : bytes;

/** Four bytes or sixteen; an address of IPv4 in IPv6's form is four. */
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

/** As the kernel prints it: each four bytes as one number of this machine. */
function hexOf(bytes: readonly number[], port: number): string {
  const hex = (byte: number): string => byte.toString(16).padStart(2, "0");
  let text = "";
  for (let at = 0; at < bytes.length; at += 4) {
    const word = bytes.slice(at, at + 4).map(hex);
    text += (isLittle ? word.toReversed() : word).join("");
  }
  return `${text}:${port.toString(16).padStart(4, "0")}`.toUpperCase();
}
