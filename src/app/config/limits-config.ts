/** Limits of one connection to the edge as settings: those of h2/connection/limits.ts, each with its default. */
import { z } from "zod";
import { formatDuration, formatSize } from "#base/units.ts";
import { Duration, Size } from "#base/config-words.ts";
import { h2LimitsDefault, type H2Limits, type Rate } from "#h2/connection/limits.ts";

const AnyDuration = Duration({ min: "1ms" });
const AnySize = Size({ min: "1B" });
const Count = z.int().min(1).max(1_000_000);
const Often = z.strictObject({
  burst: z.int().min(1).max(1_000_000).describe("How many at once."),
  perSecond: z.number().min(0.01).max(1_000_000).describe("How many more every second."),
});

/** A limit's name says whether it is a count, a size, a time or a rate; its purpose is here. */
const about = {
  streamsMax: "Calls that a connection may have open at once.",
  streamsWaitingMax: "Client: requests that may wait for a free stream.",
  headerListBytesMax: "All headers of a call together.",
  headerCountMax: "Headers of one call.",
  headerBlockBytesMax: "Headers of one call as they are sent, compressed.",
  continuationsMax: "Frames that the headers of one call may be spread over.",
  headerTableBytesMax: "Memory for header compression, in each direction.",
  frameBytesMax: "One frame of a peer's.",
  streamWindowBytes: "What one call may send before it is read, initially.",
  streamWindowBytesMax: "The same, at most: the window grows while it is used up fast.",
  connectionWindowBytes: "What all calls of a connection may send before it is read, initially.",
  connectionWindowBytesMax: "The same, at most.",
  windowGrowthMs: "A window doubles when half of it was used up in less than this.",
  streamSendBytesHigh: "What may wait to be sent in one call before its handler must wait.",
  outputBytesHigh: "What may wait for a socket before calls must wait.",
  controlBytesHigh: "Answers to a peer's frames that may wait before its frames are no longer read.",
  controlBytesMax: "And before its connection is closed.",
  quantumBytes: "What one call may send before the next one gets its turn.",
  peerResets: "Calls that a peer opens and cancels.",
  provokedResets: "Calls that a peer makes us refuse.",
  settingsFrames: "SETTINGS frames.",
  pings: "PING frames while nothing is sent.",
  priorityFrames: "PRIORITY frames.",
  emptyFrames: "Frames without content.",
  windowUpdates: "WINDOW_UPDATE frames beyond those that sent data pays for.",
  prefaceMs: "How long a new connection may take to send the HTTP/2 preface.",
  settingsAckMs: "How long it may take to acknowledge our settings.",
  frameMs: "How long a frame without data may take to arrive.",
  idleMs: "A connection without a call is closed after this.",
  keepaliveMs: "A connection that has been silent for this long gets a PING.",
  keepaliveAckMs: "And is closed if no answer comes within this time.",
  sendStallMs: "A call whose answer is not read for this long is cancelled.",
  writeStallMs: "A connection that reads nothing at all for this long is closed.",
  drainMs: "How long calls may continue when the node stops.",
  lateRequestsMax: "Calls that are answered before their request was complete, and may still send the rest.",
  lateRequestBytesMax: "How much each of them may still send.",
  lateRequestMs: "And for how long.",
} as const satisfies Record<keyof H2Limits, string>;

type Name = keyof H2Limits;

function settingOf(name: Name): z.ZodType<number | Rate | undefined> {
  const fallback = h2LimitsDefault[name];
  if (typeof fallback !== "number") {
    const { burst, perSecond } = fallback;
    return Often.optional().describe(`${about[name]} Left out: ${burst} at once, ${perSecond} a second.`);
  }
  const type = name.endsWith("Ms") ? AnyDuration : name.includes("Bytes") ? AnySize : Count;
  const shown =
    type === AnyDuration ? formatDuration(fallback) : type === AnySize ? formatSize(fallback) : String(fallback);
  return type.optional().describe(`${about[name]} Left out: ${shown}.`);
}

const names = Object.keys(about) as Name[];

/** Settings carry their unit in the value: `idleMs` is `idle: 10m`. */
const settingName = (name: Name): string => name.replace("Bytes", "").replace(/Ms$/, "");

export const LimitsConfig = z
  .strictObject(Object.fromEntries(names.map((name) => [settingName(name), settingOf(name)])))
  .transform((given): Partial<H2Limits> => {
    const set = names.map((name) => [name, given[settingName(name)]] as const);
    return Object.fromEntries(set.filter(([, value]) => value !== undefined));
  });
