/** Settings of the build cache. */
import { z } from "zod";
import { Duration, Size } from "#base/config-words.ts";

const Prefix = z
  .string()
  .regex(/^https?:\/\/[^/\s]+\//, 'write the beginning of a URL, up to a slash, such as "https://example.com/files/"');

const Property = z.string().regex(/^[^=\s]{1,100}$/, "write the name of a platform property");

const Pool = z.string().regex(/^[^\s\p{Cc}]{1,100}$/u, "write the name of a pool");

export const BuildConfig = z.strictObject({
  instances: z
    .array(z.string().max(200))
    .max(1_000)
    .optional()
    .describe('The names of instances that are served; "" is the one without a name. Left out: all.'),
  blobMax: Size({ min: "1MiB" }).prefault("1TiB").describe("Larger blobs are refused before they are sent."),
  fetchFrom: z
    .array(Prefix)
    .max(1_000)
    .optional()
    .describe(
      "URL prefixes of remote assets that may be fetched, also after redirects. Left out: none are fetched, or " +
        "any if only this machine may call.",
    ),
  execute: z.boolean().default(true).describe("Whether actions may be executed, and not only their results cached."),
  actionTimeout: Duration({ min: "1s" }).prefault("1h").describe("The time limit of an action that names none."),
  actionTimeoutMax: Duration({ min: "1s", max: "7d" })
    .prefault("1d")
    .describe("The largest time limit; actions that ask for more are refused."),
  actionMemory: Size().optional().describe("The memory limit of an action that names none. Left out: no limit."),
  queueWithin: Duration({ min: "1s", max: "7d" })
    .prefault("30m")
    .describe("How long an action may wait for a worker that can run it."),
  noWorkerWithin: Duration({ max: "7d" })
    .prefault("20s")
    .describe("And how long if no worker offers what it asks for: some may be starting."),
  pools: z
    .array(Pool)
    .max(1_000)
    .default([])
    .describe(
      "Pools that may have no worker just now, such as those that are started when they are needed: their actions " +
        "wait for `queueWithin`, not for `noWorkerWithin`.",
    ),
  leaveGrace: Duration({ max: "1d" })
    .prefault("30s")
    .describe("How long an action goes on when no caller waits for it any more."),
  properties: z
    .array(Property)
    .max(100)
    .default([])
    .describe("Platform properties that workers have labels of the same name for, besides OSFamily, ISA and Pool."),
  ignoreProperties: z
    .array(Property)
    .max(100)
    .default([])
    .describe("Platform properties that are ignored. Other unknown ones are refused."),
});

export type BuildConfig = z.output<typeof BuildConfig>;
