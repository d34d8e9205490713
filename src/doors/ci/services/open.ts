/** The services on a node, from what the node lends the door. */
import type { DoorPorts } from "#door/ports.ts";
import { spoolIn } from "#blobs/spool.ts";
import { liveClaims } from "#shard/client/live-claims.ts";
import { serviceLimitsDefault, type ServiceLimits } from "./limits.ts";
import { checkNameWith } from "#doors/ci/secrets/open-names.ts";
import type { ArtifactTwirpPorts } from "./artifacts/artifact-twirp.ts";
import { sealWith } from "./seal.ts";
import { openServices, type CiServices } from "./services.ts";

/**
 * `http` and `jobServices` are for the door: the first goes into its `OpenDoor.http`, the second is called once for
 * each attempt at a job, with the claim that the attempt runs under.
 */
export async function openCiServices(
  ports: Pick<
    DoorPorts,
    "clock" | "keyOf" | "records" | "keeps" | "stored" | "sources" | "spool" | "client" | "warn" | "issue" | "vault"
  >,
  {
    finished,
    limits = {},
  }: { readonly finished?: ArtifactTwirpPorts["finished"]; readonly limits?: Partial<ServiceLimits> } = {},
): Promise<CiServices> {
  const { clock, keyOf, records, keeps, stored, sources, spool, client, warn, issue, vault } = ports;
  const wallMs = (): number => clock.wallMs();
  return openServices({
    names: records,
    store: stored.counted("ci").store,
    sources,
    keeps,
    spool: spoolIn(spool.folder, spool.bytesMax),
    clock,
    seal: sealWith(() => keyOf("ci.seal"), wallMs),
    issue,
    checkName: checkNameWith(vault),
    isLive: liveClaims(client, clock),
    limits: { ...serviceLimitsDefault, ...limits },
    finished,
    report: (error) => warn("ci-service-failed", { error }),
  });
}
