/** The edge section of the configuration. */
import { z } from "zod";
import { Identity, identityTlsProblem, whyNotListen } from "#edge/identity/identity-config.ts";
import { Tls } from "#edge/tls/tls-config.ts";
import { ConnectionsConfig } from "./connections-config.ts";
import { LimitsConfig } from "./limits-config.ts";

const addressPattern = /^(\[[0-9a-fA-F:.]+\]|[^:\s[\]]+):(\d{1,5})$/;

const Address = z
  .string()
  .refine(
    (text) => addressPattern.test(text) && Number(addressPattern.exec(text)?.[2]) <= 65_535,
    "write host:port, such as 127.0.0.1:8980",
  );

/** The default: reachable from this machine only. */
export const edgeAddressDefault = "127.0.0.1:8980";

export const EdgeConfig = z
  .strictObject({
    listen: z
      .array(Address)
      .max(16)
      .optional()
      .describe(
        "Where gRPC, HTTP/2 and HTTP/1.1 are served, all on one port: host:port. An empty list: nowhere. " +
          `Left out: ${edgeAddressDefault}, or any free port if that one is taken.`,
      ),
    identity: Identity.prefault({}).describe(
      "Who may call, and with which rights. Left out: only this machine, as an operator.",
    ),
    connections: ConnectionsConfig.prefault({}).describe("How many connections there may be, and who may hold them."),
    limits: LimitsConfig.prefault({}).describe("What one connection may ask of the node. The defaults suit most."),
    tls: Tls.optional().describe("Certificate and key. Left out: no TLS."),
  })
  .superRefine(({ listen = [], identity, tls }, context) => {
    for (const [i, address] of listen.entries()) {
      const why = whyNotListen(parseEdgeAddress(address).host, { identity, tls: tls !== undefined });
      if (why !== undefined) context.addIssue({ code: "custom", path: ["listen", i], message: why });
    }
    const problem = identityTlsProblem(identity, tls);
    if (problem !== undefined) context.addIssue({ code: "custom", path: ["identity"], message: problem });
  });

export function parseEdgeAddress(address: string): { readonly host: string; readonly port: number } {
  const match = addressPattern.exec(address);
  return { host: (match?.[1] ?? "").replace(/^\[|\]$/g, ""), port: Number(match?.[2] ?? 0) };
}
