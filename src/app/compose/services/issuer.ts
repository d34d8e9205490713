/** The tokens that this cluster issues itself: who opens them at the edge. */
import type { Clock } from "#base/clock.ts";
import type { OwnTokens } from "#edge/identity/jwt/verifier.ts";
import { grantOpener, type Bindings } from "#issuer/grant-token.ts";
import type { Issuer } from "#issuer/issuer.ts";
import type { WorkClient } from "#shard/client/client.ts";
import { liveClaims } from "#shard/client/live-claims.ts";
import type { Config } from "#app/config/config.ts";

/** Without an address of its own the issuer has a name that no web page can have. */
export const issuerNameOf = ({ cluster }: Config): string => cluster.issuer ?? `urn:millrace:${cluster.name}`;

export type OwnTokenPorts = {
  readonly issuer: Issuer;
  readonly client: Pick<WorkClient, "task">;
  readonly clock: Clock;
  readonly isWorker: Bindings["isWorker"];
};

export function ownTokens({ issuer, client, clock, isWorker }: OwnTokenPorts): OwnTokens {
  const live = liveClaims(client, clock);
  const open = grantOpener(issuer, {
    isWorker,
    isLive: ({ tenant, job, task, token }) => live({ tenant, job, task, claim: token }),
  });
  return { issuer: issuer.name, verify: (token) => open(token) };
}
