/** The checklist against a node of ours: every item, with nothing left out that a node can be given. */
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { startNode } from "#app/compose.ts";
import { Config } from "#app/config.ts";
import { dataFolder } from "#app/data-folder.ts";
import { tokenSha256 } from "#edge/bearer.ts";
import { Skip } from "./case.ts";
import { openLab } from "./connect.ts";
import type { Lab } from "./lab.ts";
import { allCases } from "./suite.ts";

const secrets = {
  writer: "writer-secret-0123456789-0123456789-0123456789",
  reader: "reader-secret-0123456789-0123456789-0123456789",
} as const;

const tokens = [
  { name: "writer", tenant: "a", roles: ["action-cache-writer"], sha256: tokenSha256(secrets.writer) },
  { name: "reader", tenant: "a", roles: ["cache-reader"], sha256: tokenSha256(secrets.reader) },
];

const bearer = (secret: string) => [["authorization", `Bearer ${secret}`]] as const;

for (const kind of ["disk", "memory"] as const)
  describe(`a node with its store ${kind === "disk" ? "on disk" : "in memory"}`, { timeout: 300_000 }, () => {
    const undo = new AsyncDisposableStack();
    let lab: Lab;

    async function started(blobs: object, files: string): Promise<string> {
      const path = await mkdtemp(join(tmpdir(), "millrace-conformance-"));
      undo.defer(() => rm(path, { recursive: true, force: true }));
      const config = Config.parse({
        cluster: { shards: 1 },
        journal: { kind: "memory" },
        blobs,
        build: { fetchFrom: [`${files}/`] },
        worker: { enabled: false },
        edge: { listen: ["127.0.0.1:0"], identity: { tokens } },
      });
      const running = await startNode(config, dataFolder(path), { log: () => {} });
      undo.defer(() => running.stop());
      return running.edgeAddresses[0] ?? "";
    }

    before(async () => {
      const { server, url } = await fileServer();
      undo.defer(() => void server.close());
      const target = await started({ kind }, url);
      const full = await started({ kind, sizeMax: kind === "disk" ? "64MiB" : "1MiB" }, url);
      const headers = bearer(secrets.writer);
      const http = `http://${target}`;
      lab = undo.use(await openLab({ target, full, headers, readerHeaders: bearer(secrets.reader), http, files: url }));
    });
    after(() => undo.disposeAsync());

    for (const { item, title, run } of allCases)
      test(`${item}: ${title}`, { timeout: 60_000 }, async (context) => {
        try {
          await run(lab);
        } catch (error) {
          if (!(error instanceof Skip)) throw error;
          context.skip(error.message);
        }
      });
  });

async function fileServer(): Promise<{ readonly server: Server; readonly url: string }> {
  const server = createServer((request, response) => {
    const known = request.url?.startsWith("/hello.txt") ?? false;
    response.writeHead(known ? 200 : 404).end(known ? "hello, asset\n" : "");
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}
