import { defaultLimits, type Limits } from "#kernel/model/limits.ts";

/** One tenant fills a shard with a million tasks here: what is measured is not when it is refused. */
export const benchLimits: Limits = { ...defaultLimits, queuedMax: 0, stateBytesMax: 16 * 1024 ** 3 };
