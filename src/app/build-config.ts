/** The build cache, as settings. */
import { z } from "zod";
import { Size } from "#edge/config-words.ts";

const Prefix = z
  .string()
  .regex(
    /^https?:\/\/[^/\s]+\//,
    'write the beginning of an address, up to a slash, such as "https://example.com/files/"',
  );

export const BuildConfig = z.strictObject({
  instances: z
    .array(z.string().max(200))
    .max(1_000)
    .optional()
    .describe('The names of instances that are served; "" is the one without a name. Left out: any.'),
  blobMax: Size({ min: "1MiB" }).prefault("1TiB").describe("Larger blobs are refused before they are sent."),
  fetchFrom: z
    .array(Prefix)
    .max(1_000)
    .default([])
    .describe("What addresses of remote assets must begin with to be fetched; redirects, too. None: none are."),
});

export type BuildConfig = z.output<typeof BuildConfig>;
