/** JSON has no Infinity: no limit is null there. */
import type { Caps } from "#swarm/uploads.ts";

export type JsonCaps = { readonly [K in keyof Caps]: number | null };

export const noCaps: Caps = { host: Infinity, rack: Infinity, wan: Infinity };

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
