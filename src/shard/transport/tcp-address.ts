/** Where a node listens: `unix:/path/to/socket` or `tcp:host:port`; without authentication on this machine only. */
import { Fault } from "#base/fault.ts";
import type { Address } from "./transport.ts";

export type Endpoint =
  | { readonly kind: "unix"; readonly path: string }
  | { readonly kind: "tcp"; readonly host: string; readonly port: number };

/** The system silently cuts longer paths: at 104 bytes on some, 108 on others. */
export const socketPathBytesMax = 103;

export function parseAddress(address: Address): Endpoint {
  if (address.startsWith("unix:")) return { kind: "unix", path: checkedPath(address.slice("unix:".length)) };
  const match = /^tcp:(\[[0-9a-fA-F:.]+\]|[^:\s]+):(\d{1,5})$/.exec(address);
  const port = Number(match?.[2]);
  if (!match || port > 65_535)
    throw new Fault("invalid", "read address", { address, why: "write unix:/path or tcp:host:port" });
  return { kind: "tcp", host: (match[1] ?? "").replace(/^\[|\]$/g, ""), port };
}

export const formatAddress = (endpoint: Endpoint): Address =>
  endpoint.kind === "unix"
    ? `unix:${endpoint.path}`
    : `tcp:${endpoint.host.includes(":") ? `[${endpoint.host}]` : endpoint.host}:${endpoint.port}`;

export const isLoopback = (endpoint: Endpoint): boolean =>
  endpoint.kind === "unix" ||
  endpoint.host === "localhost" ||
  endpoint.host === "::1" ||
  /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(endpoint.host);

function checkedPath(path: string): string {
  const bytes = Buffer.byteLength(path);
  if (path.startsWith("\\\\.\\pipe\\") || (path.length > 0 && bytes <= socketPathBytesMax)) return path;
  throw new Fault("invalid", "read address", {
    path,
    bytes,
    bytesMax: socketPathBytesMax,
    why: "a socket's path must be short; choose another data directory",
  });
}
