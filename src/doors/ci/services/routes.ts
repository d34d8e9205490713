/** Serves the calls of endpoints.ts. */
import type { Store } from "#blobs/store.ts";
import { Problem } from "#http/problem.ts";
import { route, type Route } from "#http/route.ts";
import { readContent } from "./content.ts";
import * as endpoints from "./endpoints.ts";
import type { CiServices } from "./services.ts";

const timeOf = (ms: number): string => new Date(ms).toISOString();
const noArtifact = (): Problem => new Problem(404, "the run has no such artifact");

export const serviceRoutes = ({ artifacts, caches }: CiServices, store: Store): readonly Route[] => [
  route(endpoints.listRunArtifacts, async ({ tenant, params: { run } }) => ({
    body: {
      artifacts: (await artifacts.list(tenant, run)).map((artifact) => ({
        id: artifact.id,
        name: artifact.name,
        sizeBytes: artifact.sealed.content.sizeBytes,
        sha256: artifact.sealed.sha256,
        type: artifact.mimeType,
        createdAt: timeOf(artifact.createdAtMs),
        expiresAt: timeOf(artifact.expiresAtMs),
      })),
    },
  })),
  route(endpoints.readRunArtifact, async ({ tenant, params: { run, name } }) => {
    const artifact = await artifacts.find(tenant, run, name);
    if (!artifact) throw noArtifact();
    const { content } = artifact.sealed;
    const headers = { "content-type": artifact.mimeType, "content-length": String(content.sizeBytes) };
    return { headers, body: copies(readContent(store.forTenant(tenant).blobs, content)) };
  }),
  route(endpoints.removeRunArtifact, async ({ tenant, params: { run, name } }) => {
    if ((await artifacts.remove(tenant, run, name)) === undefined) throw noArtifact();
    return undefined;
  }),
  route(endpoints.listCaches, async ({ tenant, query: { repository, limit, cursor } }) => {
    const { entries, next } = await caches.page(tenant, repository, { limit, cursor });
    const shown = entries.map((entry) => ({
      id: entry.id,
      key: entry.key,
      ref: entry.ref,
      version: entry.version,
      sizeBytes: entry.sizeBytes,
      createdAt: timeOf(entry.createdAtMs),
      usedAt: timeOf(entry.usedAtMs),
    }));
    return { body: { caches: shown, ...(next !== undefined && { next }) } };
  }),
  route(endpoints.removeCaches, async ({ tenant, query: { repository, key, ref } }) => {
    const isMeant = (entry: { readonly key: string; readonly ref: string }): boolean =>
      entry.key === key && (ref === undefined || entry.ref === ref);
    if ((await caches.remove(tenant, repository, isMeant)) === 0) throw new Problem(404, "there is no such cache");
    return undefined;
  }),
];

/** A part of a blob is valid until the next is read, and a socket may hold it for longer. */
async function* copies(parts: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const part of parts) yield Uint8Array.from(part);
}
