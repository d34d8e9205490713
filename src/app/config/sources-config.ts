/** Settings of repositories. */
import { z } from "zod";
import { Size } from "#base/config-words.ts";
import { protocols } from "#sources/remote.ts";

export const SourcesConfig = z.strictObject({
  protocols: z
    .array(z.enum(protocols))
    .default(["https", "file"])
    .describe(
      "How repositories may be fetched that are registered by a URL or a path. file: paths of this machine, which " +
        "only operators register. ssh: with the keys of the node's user.",
    ),
  privateAddresses: z
    .boolean()
    .default(false)
    .describe("Whether repositories may be fetched from addresses of private networks and of this machine."),
  pushMax: Size({ min: "1MiB" }).prefault("2GiB").describe("The largest push to a repository that a node keeps."),
});

export type SourcesConfig = z.output<typeof SourcesConfig>;
