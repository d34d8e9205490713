import { Size } from "#base/config-words.ts";
import type { SwarmPlace } from "./agent.ts";

type Words = {
  readonly rack?: string | undefined;
  readonly peer?: string | undefined;
  readonly upload?: string | undefined;
};

/** Undefined: all bytes come from nodes. */
export function swarmPlace({ peer, rack = "", upload }: Words): SwarmPlace | undefined {
  if (peer === "none") return undefined;
  const [, host, port] = /^(.*?)(?::(\d{1,5}))?$/.exec(peer ?? "127.0.0.1") ?? [];
  const rate = upload === undefined ? Infinity : Size().parse(upload);
  const caps = { host: rate, rack: Infinity, wan: Infinity };
  return { rack, host: host ?? "127.0.0.1", port: Number(port ?? 0), caps };
}
