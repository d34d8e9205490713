/** What other doors ask of CI, by name, as JSON: to start a workflow of a commit, and for an artifact's bytes. */
import { z } from "zod";
import type { Store } from "#blobs/store.ts";
import type { PeerCalls } from "#door/door.ts";
import type { Sources } from "#sources/sources.ts";
import { dispatch } from "#doors/ci/runs/trigger/dispatch.ts";
import type { TriggerPorts } from "#doors/ci/runs/trigger/trigger-event.ts";
import type { Artifacts } from "#doors/ci/services/artifacts/artifacts.ts";
import { partsOf } from "./services/content.ts";

export type CallPorts = {
  readonly sources: Sources;
  readonly start: TriggerPorts;
  readonly artifacts: Pick<Artifacts, "find">;
  readonly store: Store;
};

const Start = z.strictObject({
  tenant: z.string(),
  repository: z.string(),
  workflow: z.string(),
  sha: z.string(),
  inputs: z.record(z.string(), z.string()),
  actor: z.string(),
  /** The same key never makes a second run. */
  key: z.string(),
  whenEnded: z.array(z.strictObject({ jobId: z.string(), stage: z.string(), name: z.string() })).max(1),
});

const Find = z.strictObject({ tenant: z.string(), run: z.string(), name: z.string() });

export const ciCalls = ({ sources, start, artifacts, store }: CallPorts): PeerCalls => ({
  "ci.start": async (body) => {
    const { tenant, repository, sha, ...rest } = Start.parse(body);
    const record = await sources.get(tenant, repository);
    // The door that asks has checked that its caller may run builds on nodes.
    const { jobId } = await dispatch(start, { ...rest, record, ref: sha, isTrusted: true });
    return { run: jobId };
  },
  "ci.artifact": async (body) => {
    const { tenant, run, name } = Find.parse(body);
    const found = await artifacts.find(tenant, run, name);
    if (!found) return { parts: null };
    return { parts: await partsOf(store.forTenant(tenant).blobs, found.sealed.content) };
  },
});
