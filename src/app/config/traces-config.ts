/** Settings of traces. */
import { z } from "zod";
import { File } from "#base/config-words.ts";

export const TracesConfig = z.strictObject({
  endpoint: z
    .url({ protocol: /^https?$/ })
    .describe("A collector that takes OTLP over HTTP, such as http://127.0.0.1:4318; /v1/traces is put behind it."),
  share: z
    .number()
    .min(0)
    .max(1)
    .default(0.01)
    .describe("The share of traces beginning here that is recorded. A caller that traces has decided already."),
  token: File.optional().describe("A file with a bearer token on its only line, for the collector."),
  service: z.string().min(1).max(200).default("millrace").describe("The service name in spans."),
  queueMax: z
    .int()
    .min(100)
    .max(1_000_000)
    .default(10_000)
    .describe("Spans that may wait to be sent. More are dropped and counted."),
});

export type TracesConfig = z.output<typeof TracesConfig>;
