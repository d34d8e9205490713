/** An edge with the HTTP caches for tests: a real port, real tokens, a store in memory. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ActionIndex } from "#blobs/action-index.ts";
import { createMemoryIndex } from "#blobs/memory/memory-index.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import { createMemoryStore } from "#blobs/memory/memory-store.ts";
import type { Store } from "#blobs/store.ts";
import { openHttp } from "#doors/build/open/http.ts";
import { spoolIn } from "#blobs/spool.ts";
import { buildSettingsDefault } from "#doors/build/settings.ts";
import { Seen } from "#doors/build/why/seen.ts";
import { tokenSha256 } from "#edge/identity/bearer.ts";
import { TrustRules } from "#doors/build/cache/trust-rules.ts";
import { startEdge } from "#edge/edge.ts";
import { Identity } from "#edge/identity/identity-config.ts";
import { Log } from "#edge/log/log.ts";
import { identifyBy } from "#app/compose/identify.ts";
import { systemClock as clock } from "#door/system-clock.ts";

const who = {
  writer: { tenant: "a", roles: ["action-cache-writer"] },
  reader: { tenant: "a", roles: ["cache-reader"] },
  uploader: { tenant: "a", roles: ["cache-writer"] },
  other: { tenant: "b", roles: ["action-cache-writer"] },
} as const;

export type Who = keyof typeof who;

export const tokenOf = (name: Who): string => `${name}-token-0123456789-0123456789`;

export type Rig = AsyncDisposable & {
  readonly port: number;
  readonly url: string;
  readonly store: Store;
  readonly index: ActionIndex;
  readonly reported: readonly unknown[];
};

/** As small as a test wants them. */
type Limits = { readonly bytesMax?: number; readonly idleMs?: number; readonly spoolBytesMax?: number };

export async function startRig(limits: Limits = {}): Promise<Rig> {
  const folder = await mkdtemp(join(tmpdir(), "millrace-http-caches-"));
  const store = createMemoryStore({ clock, sizeBytesMax: 64 * 1024 * 1024 });
  const index = createMemoryIndex();
  const reported: unknown[] = [];
  const tokens = Object.entries(who).map(([name, grant]) => ({
    name,
    ...grant,
    sha256: tokenSha256(tokenOf(name as Who)),
  }));
  const served = openHttp(
    {
      clock,
      stored: {
        blobs: createMemoryBlobs({ clock, sizeBytesMax: 1024 }),
        store,
        index,
        counted: () => ({ store, index }),
      },
      warn: (_event, { error }) => void reported.push(error),
    },
    {
      settings: { ...buildSettingsDefault, blobBytesMax: limits.bytesMax ?? 4 * 1024 ** 3 },
      execution: undefined,
      builds: undefined,
      trust: new TrustRules(index),
      seen: new Seen({ index, wallMs: () => clock.wallMs() }),
      spool: spoolIn(folder, limits.spoolBytesMax),
      idleMs: limits.idleMs,
    },
  );
  const edge = await startEdge({
    clock,
    listen: [{ host: "127.0.0.1", port: 0 }],
    identity: Identity.parse({ tokens }),
    services: () => new Map(),
    http(admission, registry) {
      served.metrics(registry);
      return { serve: (request, peer) => served.http(request, identifyBy(admission, peer)) };
    },
    notReady: () => [],
    log: new Log((line) => reported.push(line), clock),
    h2: { drainMs: 500 },
  });
  const port = edge.ports[0] ?? 0;
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    store,
    index,
    reported,
    async [Symbol.asyncDispose]() {
      await edge.close();
      await store.close();
      await rm(folder, { recursive: true });
    },
  };
}

export type Step = {
  readonly does: string;
  /** The writer by default; undefined sends no credentials. */
  readonly as?: Who | undefined;
  readonly ask: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
  readonly gets: number;
  readonly says?: string | RegExp;
  readonly with?: Readonly<Record<string, string | RegExp | null>>;
};
