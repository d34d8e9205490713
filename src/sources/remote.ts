/**
 * From where repositories may be fetched. A caller that registers one makes the node call an address: only by protocols
 * the configuration allows, and no address inside the node's own network unless it says so.
 */
import { lookup } from "node:dns/promises";
import { BlockList, isIP } from "node:net";
import { isAbsolute } from "node:path";
import { Fault } from "#base/fault.ts";

export const protocols = ["https", "http", "ssh", "file"] as const;
export type Protocol = (typeof protocols)[number];

export type RemoteRules = {
  readonly protocols: readonly Protocol[];
  /** Whether addresses of private networks and of this machine may be called. */
  readonly privateAddresses: boolean;
  /** A folder of the node's own, whose repositories are fetched whatever the protocols are. */
  readonly ownFolder?: string;
};

export type Remote = { readonly protocol: Protocol; readonly host: string | undefined };

const urlLengthMax = 2_000;

/** What kind of address it is. Throws Fault "invalid" for what is none, or is not allowed. */
export function checkRemote(url: string, rules: RemoteRules): Remote {
  const remote = readRemote(url);
  if (rules.ownFolder !== undefined && url.startsWith(`${rules.ownFolder}/`)) return remote;
  if (!rules.protocols.includes(remote.protocol))
    throw refused(url, `${remote.protocol} is not among sources.protocols (${rules.protocols.join(", ")})`);
  if (remote.host !== undefined && isIP(remote.host) !== 0 && !rules.privateAddresses && isPrivate(remote.host))
    throw refused(url, "addresses of private networks are called only with sources.privateAddresses");
  return remote;
}

function readRemote(url: string): Remote {
  if (url.length > urlLengthMax || /[\s\p{Cc}]/u.test(url) || url.startsWith("-"))
    throw refused(url, "it cannot be read");
  if (isAbsolute(url)) return { protocol: "file", host: undefined };
  const parsed = URL.parse(url);
  const protocol = parsed?.protocol.slice(0, -1);
  if (!parsed || !isProtocol(protocol)) throw refused(url, `write a path, or a URL of ${protocols.join(", ")}`);
  if (protocol === "file") {
    if (parsed.hostname !== "") throw refused(url, "a file has no host");
    return { protocol, host: undefined };
  }
  if (parsed.password !== "") throw refused(url, "a password does not belong in an address");
  if (parsed.hostname === "" || parsed.hostname.startsWith("-")) throw refused(url, "it has no host");
  return { protocol, host: parsed.hostname.replace(/^\[(.*)\]$/, "$1") };
}

const isProtocol = (text: string | undefined): text is Protocol => protocols.some((one) => one === text);

/** Looks the host up, so that a name cannot lead into the private network. Call it right before a fetch. */
export async function checkReachable(url: string, rules: RemoteRules): Promise<Remote> {
  const remote = checkRemote(url, rules);
  if (remote.host === undefined || rules.privateAddresses) return remote;
  const found = await lookup(remote.host, { all: true }).catch((cause: unknown) => {
    throw new Fault("unavailable", "look up the repository's host", { host: remote.host }, cause);
  });
  if (found.some(({ address }) => isPrivate(address)))
    throw refused(url, "its host is in a private network: that is called only with sources.privateAddresses");
  return remote;
}

const inside = new BlockList();
for (const [network, prefix] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["224.0.0.0", 3],
] as const)
  inside.addSubnet(network, prefix, "ipv4");
for (const [network, prefix] of [
  ["::", 127],
  ["fc00::", 7],
  ["fe80::", 10],
  ["ff00::", 8],
] as const)
  inside.addSubnet(network, prefix, "ipv6");

/** IPv4 addresses that are written as IPv6 count as what they are. */
export function isPrivate(address: string): boolean {
  const mapped = /^::ffff:([\d.]+)$/i.exec(address)?.[1] ?? address;
  if (isIP(mapped) === 4) return inside.check(mapped, "ipv4");
  return isIP(mapped) !== 6 || /^(?:::ffff:|64:ff9b:)/i.test(mapped) || inside.check(mapped, "ipv6");
}

const refused = (url: string, why: string): Fault =>
  new Fault("invalid", "fetch a repository", { url: url.replace(/\/\/[^/@]*@/, "//***@").slice(0, 200), why });
