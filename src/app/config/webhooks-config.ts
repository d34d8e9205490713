/** Settings of webhooks. */
import { z } from "zod";
import { Duration } from "#base/config-words.ts";

export const WebhooksConfig = z.strictObject({
  http: z.boolean().default(false).describe("Whether webhooks may be sent by http: what they say can be read there."),
  privateAddresses: z
    .boolean()
    .default(false)
    .describe("Whether webhooks may be sent to addresses of private networks and of this machine."),
  timeout: Duration({ min: "1s", max: "60s" }).prefault("10s").describe("How long a receiver has to answer."),
});
