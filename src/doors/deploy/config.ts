import { z } from "zod";

export const DeployConfig = z.strictObject({
  signingKey: z
    .string()
    .min(1)
    .optional()
    .describe(
      "a file with the Ed25519 private key, as PEM, that goals and manifests are signed with; nodes of one cluster " +
        "need the same; left out: the node makes one of its own",
    ),
});
export type DeploySettings = z.output<typeof DeployConfig>;
