/** The gRPC services of a build cache over whatever store a test brings. */
import { tmpdir } from "node:os";
import type { Action } from "#access/policy.ts";
import type { Clock } from "#base/clock.ts";
import { createMemoryIndex } from "#blobs/memory/memory-index.ts";
import type { Store } from "#blobs/store.ts";
import { assetSettingsDefault } from "#doors/build/assets/asset-download.ts";
import { TrustRules } from "#doors/build/cache/trust-rules.ts";
import { Spool } from "#blobs/spool.ts";
import { grpcCallers } from "#doors/build/open/callers.ts";
import { serveBuild } from "#doors/build/serve.ts";
import { buildSettingsDefault } from "#doors/build/settings.ts";
import type { Admitted } from "#edge/port/admission.ts";
import type { GrpcServer } from "#grpc/server.ts";

const MiB = 1024 ** 2;

export function addBuildServices(
  server: GrpcServer<Admitted>,
  { store, clock, folder = tmpdir() }: { readonly store: Store; readonly clock: Clock; readonly folder?: string },
): ReadonlyMap<string, Action> {
  const spool = new Spool({ folder, memoryBytesEach: MiB, memoryBytesMax: 64 * MiB, bytesMax: 1_024 * MiB });
  const settings = { settings: buildSettingsDefault, assets: assetSettingsDefault };
  const index = createMemoryIndex();
  const ports = { store, index, trust: new TrustRules(index), clock, spool, ...settings, report: () => {} };
  return new Map(serveBuild(server, ports, grpcCallers()).map((path) => [path, "service.describe"]));
}
