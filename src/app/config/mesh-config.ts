/** The mesh's part of the configuration. Left out, and without `up --join`, there is no mesh. */
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
    listen: Address.default(meshListenDefault).describe("UDP and TCP on one port. Port 0: any that is free."),
    advertise: Address.optional().describe(
      "What other members are told, when it is not `listen`: an IP address and a port. Left out with a `listen` of " +
        "all addresses: this machine's first.",
    ),
    join: z
      .array(z.string().min(1).max(300))
      .max(64)
      .default([])
      .describe("Members to join through, host:port; tried again while this node is alone. `up --join` adds to it."),
    label: z
      .string()
      .max(255)
      .default("")
      .describe("Keeps meshes apart that might reach each other; the same on all nodes."),
    keys: z
      .array(MeshKey)
      .max(16)
      .default([])
      .describe(
        "Seal everything with the first of these, and open what any of them has sealed. 16, 24 or 32 bytes, base64.",
      ),
    keysFile: File.optional().describe("The same as a JSON list in a file of its own, such as serf's keyring file."),
    compress: z.boolean().default(true).describe("Whether what is sent is compressed. What comes may always be."),
    profile: z
      .enum(profileNames)
      .default("lan")
      .describe("How patient the members are with each other: local for one machine, lan, or wan."),
  })
  .superRefine(({ listen, keys, keysFile }, context) => {
    if (keys.length > 0 || keysFile !== undefined || isLoopbackHost(parseEdgeAddress(listen).host)) return;
    const message = "without keys anybody on the network could join: use 127.0.0.1, or set mesh.keys";
    context.addIssue({ code: "custom", path: ["listen"], message });
  });

export type MeshConfig = z.output<typeof MeshConfig>;

/** What `--join` on the command line adds: a mesh with the defaults, or another member to join through. */
export const withJoin = (mesh: MeshConfig | undefined, join: string | undefined): MeshConfig | undefined => {
  const targets = (join ?? "").split(",").filter((target) => target !== "");
  if (targets.length === 0) return mesh;
  const base = mesh ?? MeshConfig.parse({});
  return { ...base, join: [...targets, ...base.join] };
};
