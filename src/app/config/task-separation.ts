/**
 * Whether actions could act as the node: without a sandbox, as the node's own user, they can read its token and its
 * secrets, and can signal it. That is acceptable on a machine with a single user. Pure.
 */
import { Fault } from "#base/fault.ts";
import { isLoopbackHost } from "#edge/identity/loopback.ts";
import { allTenants } from "#access/principal.ts";
import { isLoopback, parseAddress } from "#shard/transport/tcp-address.ts";
import type { SandboxAbout } from "#worker/sandbox/sandbox.ts";
import type { Config } from "./config.ts";
import { parseEdgeAddress } from "./edge-config.ts";

const wants =
  "install bubblewrap (and allow user namespaces), or run the node as root so that actions get users of their own, " +
  "or set worker.sandbox: bubblewrap to run no actions without it, or worker.enabled: false";

/** A line for the log if actions are not separated from the node; a Fault if other users rely on that. */
export function checkSeparation(
  config: Pick<Config, "edge" | "node">,
  about: Pick<SandboxAbout, "kind" | "users"> | undefined,
): string | undefined {
  if (about?.kind !== "plain" || about.users === "own") return undefined;
  const why = whyNotAlone(config);
  if (why !== undefined)
    throw new Fault("invalid", "start worker", {
      why: `actions would run as the node's own user and could act as its operator, but ${why}`,
      wants,
    });
  return `actions run as the node's own user and can act as its operator: run only what you trust. Better: ${wants}`;
}

function whyNotAlone({ edge, node }: Pick<Config, "edge" | "node">): string | undefined {
  const beyond =
    edge.listen?.find((address) => !isLoopbackHost(parseEdgeAddress(address).host)) ??
    node.listen.find((address) => address !== "unix" && !isLoopback(parseAddress(address)));
  if (beyond !== undefined) return `the node listens beyond this machine (${beyond})`;
  const { tokens, issuers, certificates, anonymous } = edge.identity;
  const named = [...tokens, ...certificates].map(({ tenant }) => tenant);
  const issued = issuers.flatMap(({ tenant }) =>
    "fixed" in tenant
      ? [tenant.fixed]
      : (tenant.map && Object.values(tenant.map)) || ["one of the issuer's", "another"],
  );
  const tenants = new Set([...named, ...issued, ...(anonymous ? [anonymous.tenant] : [])]);
  tenants.delete(allTenants);
  return tenants.size > 1 ? "its identity settings name more than one tenant" : undefined;
}
