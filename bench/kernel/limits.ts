import { defaultLimits, type Limits } from "#kernel/model/limits.ts";

/** One tenant fills a shard with a million tasks here: refusals are not what is measured. */
export const benchLimits: Limits = { ...defaultLimits, queuedMax: 0, stateBytesMax: 16 * 1024 ** 3 };
