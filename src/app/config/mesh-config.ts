/** The mesh section of the configuration. Without it, and without `up --join`, there is no mesh. */
import { z } from "zod";
import { File } from "#base/config-words.ts";
import { isLoopbackHost } from "#edge/identity/loopback.ts";
import { profileNames } from "#mesh/machine/profile.ts";
import { parseEdgeAddress } from "./edge-config.ts";

const addressPattern = /^(\[[0-9a-fA-F:.]+\]|[^:\s[\]]+):(\d{1,5})$/;
const isAddress = (text: string): boolean =>
  addressPattern.test(text) && Number(addressPattern.exec(text)?.[2]) <= 65_535;

const Address = z.string().refine(isAddress, "write host:port, such as 127.0.0.1:7946");

const keyHelp = "write 16, 24 or 32 bytes in base64, such as `serf keygen` prints";

export const MeshKey = z
  .string()
  .refine((text) => /^[A-Za-z0-9+/]+={0,2}$/.test(text) && [16, 24, 32].includes(meshKeyBytes(text).length), keyHelp);

export const meshKeyBytes = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, "base64"));

export const meshListenDefault = "127.0.0.1:7946";

export const MeshConfig = z
  .strictObject({
    listen: Address.default(meshListenDefault).describe("UDP and TCP on one port. Port 0: any free one."),
    advertise: Address.optional().describe(
      "The address for other members, if not `listen`: an IP address and a port. Left out with a `listen` of " +
        "all addresses: this machine's first.",
    ),
    join: z
      .array(z.string().min(1).max(300))
      .max(64)
      .default([])
      .describe(
        "Members to join through, host:port; retried while this node has no other members. `up --join` adds to it.",
      ),
    label: z
      .string()
      .max(255)
      .default("")
      .describe("Separates meshes that might reach each other; the same on all nodes."),
    keys: z
      .array(MeshKey)
      .max(16)
      .default([])
      .describe(
        "Encrypt all messages with the first of these, and decrypt with any of them. 16, 24 or 32 bytes, base64.",
      ),
    keysFile: File.optional().describe("The keys as a JSON list in a separate file, such as serf's keyring file."),
    compress: z.boolean().default(true).describe("Whether sent messages are compressed. Received ones may always be."),
    profile: z
      .enum(profileNames)
      .default("lan")
      .describe("Timing of the protocol: local for one machine, lan, or wan."),
  })
  .superRefine(({ listen, keys, keysFile }, context) => {
    if (keys.length > 0 || keysFile !== undefined || isLoopbackHost(parseEdgeAddress(listen).host)) return;
    const message = "without keys any host on the network could join: use 127.0.0.1, or set mesh.keys";
    context.addIssue({ code: "custom", path: ["listen"], message });
  });

export type MeshConfig = z.output<typeof MeshConfig>;

/** Applies `--join`: a mesh with the defaults, or another member to join through. */
export const withJoin = (mesh: MeshConfig | undefined, join: string | undefined): MeshConfig | undefined => {
  const targets = (join ?? "").split(",").filter((target) => target !== "");
  if (targets.length === 0) return mesh;
  const base = mesh ?? MeshConfig.parse({});
  return { ...base, join: [...targets, ...base.join] };
};
