/** JSON has no Infinity: no limit is null there. */
import type { Caps } from "#swarm/uploads.ts";

/** What a tenant's people set: for each machine, and for all that send through one link. */
export type FleetCaps = Caps & {
  /** What leaves a rack, by all its machines together. */
  readonly rackLink: number;
  /** What nodes of a region send to machines of others, and fetch for them. */
  readonly wanLink: number;
};

export type JsonFleetCaps = { readonly [K in keyof FleetCaps]: number | null };

export type JsonCaps = { readonly [K in keyof Caps]: number | null };

export const noCaps: Caps = { host: Infinity, rack: Infinity, wan: Infinity };
export const noFleetCaps: FleetCaps = { ...noCaps, rackLink: Infinity, wanLink: Infinity };

const jsonRate = (rate: number): number | null => (Number.isFinite(rate) ? rate : null);

export const capsAsJson = ({
  host,
  rack,
  wan,
}: Caps): { host: number | null; rack: number | null; wan: number | null } => ({
  host: jsonRate(host),
  rack: jsonRate(rack),
  wan: jsonRate(wan),
});

export const fleetCapsAsJson = (caps: FleetCaps): { -readonly [K in keyof FleetCaps]: number | null } => ({
  ...capsAsJson(caps),
  rackLink: jsonRate(caps.rackLink),
  wanLink: jsonRate(caps.wanLink),
});

export const fleetCapsFromJson = (caps: JsonFleetCaps): FleetCaps => ({
  ...capsFromJson(caps),
  rackLink: caps.rackLink ?? Infinity,
  wanLink: caps.wanLink ?? Infinity,
});

export const capsFromJson = ({ host, rack, wan }: JsonCaps): Caps => ({
  host: host ?? Infinity,
  rack: rack ?? Infinity,
  wan: wan ?? Infinity,
});

/** The stricter of two: what this machine allows itself, and what the fleet is allowed. */
export const strictest = (a: Caps, b: Caps): Caps => ({
  host: Math.min(a.host, b.host),
  rack: Math.min(a.rack, b.rack),
  wan: Math.min(a.wan, b.wan),
});
