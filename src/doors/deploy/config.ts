import { z } from "zod";
import { Size } from "#base/config-words.ts";

export const DeployConfig = z.strictObject({
  originUpload: Size()
    .default(256 * 1024 * 1024)
    .describe("how many bytes a second this node sends to machines, at most; machines give the rest to each other"),
  signingKey: z
    .string()
    .min(1)
    .max(4_096)
    .optional()
    .describe(
      "a file with the Ed25519 private key, as PEM, that goals and manifests are signed with; nodes of one cluster " +
        "need the same; left out: all nodes share one in the vault",
    ),
});
export type DeploySettings = z.output<typeof DeployConfig>;
