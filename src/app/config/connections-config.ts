/** How many connections the edge holds, from whom, and for how long. */
import { readFileSync } from "node:fs";
import { z } from "zod";
import { Duration } from "#base/config-words.ts";
import { slotLimitsDefault, type SlotLimits } from "#edge/port/connection-slots.ts";

export const ConnectionsConfig = z.strictObject({
  max: z
    .int()
    .min(20)
    .max(1_000_000)
    .optional()
    .describe(
      "Connections at once, of all callers together. When there is no room for a new one, the connection without an " +
        `accepted caller that has waited longest is closed. Left out: ${slotLimitsDefault.max}, or half of the files ` +
        "that the process may have open, if that is less.",
    ),
  perAddress: z
    .int()
    .min(4)
    .max(1_000_000)
    .optional()
    .describe(
      "Connections without an accepted caller from one address (IPv6: from one /64 network). Left out: " +
        `${slotLimitsDefault.perAddressMax}; with identity.cleartext, where all come from the proxy, as many as max.`,
    ),
  firstCall: Duration({ min: "100ms", max: "5m" })
    .prefault("10s")
    .describe(
      "A connection without a call is closed after this, whatever else it sends. HTTP/1.1: also when the headers " +
        "of a later call take longer.",
    ),
  strangerIdle: Duration({ min: "1s", max: "1h" })
    .prefault("60s")
    .describe(
      "A connection whose caller was never accepted, such as that of a health check, is closed after being idle for " +
        "this long. Connections of accepted callers: see limits.idle.",
    ),
});

export type ConnectionsConfig = z.output<typeof ConnectionsConfig>;

export function placeLimitsOf(
  { max: given, perAddress, firstCall, strangerIdle }: ConnectionsConfig,
  { cleartext, filesMax = openFilesMax() }: { readonly cleartext: boolean; readonly filesMax?: number },
): SlotLimits {
  const max = given ?? Math.max(20, Math.min(slotLimitsDefault.max, Math.floor(filesMax / 2)));
  return {
    max,
    lobbyMin: Math.ceil(max / 20),
    perAddressMax: perAddress ?? (cleartext ? max : slotLimitsDefault.perAddressMax),
    firstCallMs: firstCall,
    strangerIdleMs: strangerIdle,
  };
}

/** How many files the process may open; Node has raised the soft limit to the hard one. */
function openFilesMax(): number {
  try {
    const line = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"));
    return line ? Number(line[1]) : Infinity;
  } catch {
    return Infinity; // not Linux
  }
}
