/** Uploads and downloads at signed addresses: uploads as block blobs of Azure, which is what the clients speak. */
import { randomUUID } from "node:crypto";
import type { Clock } from "#base/clock.ts";
import type { Store } from "#blobs/store.ts";
import { bodyBytes, bodyIdleMsDefault, bodyParts } from "#http/body.ts";
import { Problem } from "#http/problem.ts";
import type { Artifacts } from "#doors/ci/services/artifacts/artifacts.ts";
import { blockListBytesMax, blockName, readBlockList } from "./block-list.ts";
import type { BlockUploads } from "./block-uploads.ts";
import type { Caches } from "#doors/ci/services/caches/caches.ts";
import { contentResponse, type Content } from "./content.ts";
import type { ServiceLimits } from "./limits.ts";
import type { Seal } from "./seal.ts";
import { openSigned, type Signed } from "./signed-address.ts";

export type FilePorts = {
  readonly seal: Seal;
  readonly uploads: BlockUploads;
  readonly artifacts: Artifacts;
  readonly caches: Caches;
  readonly store: Store;
  readonly clock: Clock;
  readonly limits: ServiceLimits;
};

export async function serveSigned(ports: FilePorts, request: Request, url: URL): Promise<Response> {
  const signed = await openSigned(ports.seal, url, ports.clock.wallMs());
  if (signed.does === "upload") return await upload(ports, request, url, signed);
  if (request.method !== "GET" && request.method !== "HEAD")
    throw new Problem(405, "only GET is answered here", { headers: { allow: "GET, HEAD" } });
  return await download(ports, request, signed);
}

async function upload(ports: FilePorts, request: Request, url: URL, { tenant, id }: Signed): Promise<Response> {
  const { uploads, clock, limits } = ports;
  if (request.method !== "PUT") throw new Problem(405, "only PUT is answered here", { headers: { allow: "PUT" } });
  const ref = { tenant, id };
  const announced = Number(request.headers.get("content-length") ?? Number.NaN);
  const sizeBytes = Number.isSafeInteger(announced) ? announced : undefined;
  const body = () => bodyParts(request, { bytesMax: limits.blockBytesMax, idleMs: bodyIdleMsDefault }, clock);
  switch (url.searchParams.get("comp")) {
    case "block":
      await uploads.putBlock(ref, blockName(url.searchParams.get("blockid")), body(), sizeBytes);
      return created(clock);
    case "blocklist": {
      const bytes = await bodyBytes(request, { bytesMax: blockListBytesMax, idleMs: bodyIdleMsDefault }, clock);
      await uploads.commit(ref, readBlockList(bytes.toString("utf8"), limits.blocksMax).map(blockName));
      return created(clock);
    }
    case null:
      if ((request.headers.get("x-ms-blob-type") ?? "BlockBlob") !== "BlockBlob")
        throw new Problem(400, "x-ms-blob-type: only BlockBlob is accepted");
      await uploads.putWhole(ref, body(), sizeBytes);
      return created(clock);
    default:
      throw new Problem(400, "comp: block and blocklist are accepted");
  }
}

const created = (clock: Clock): Response =>
  new Response(null, {
    status: 201,
    headers: {
      etag: `"${randomUUID()}"`,
      "last-modified": new Date(clock.wallMs()).toUTCString(),
      "x-ms-request-id": randomUUID(),
      "x-ms-version": "2024-11-04",
    },
  });

async function download(
  { artifacts, caches, store }: FilePorts,
  request: Request,
  { tenant, id, fileName }: Signed,
): Promise<Response> {
  const [kind, number = ""] = id.split(".");
  const { blobs } = store.forTenant(tenant);
  if (kind === "cache") {
    const found = await caches.byId(tenant, number);
    if (found) return contentResponse(request, blobs, found.content, { "content-type": "application/octet-stream" });
  }
  const artifact = kind === "artifact" ? await artifacts.byId(tenant, number) : undefined;
  if (!artifact) throw new Problem(404, "what this address leads to is gone");
  const { content, sha256 }: { content: Content; sha256: string } = artifact.sealed;
  const headers = {
    "content-type": artifact.mimeType,
    "content-disposition": disposition(fileName),
    etag: `"${sha256}"`,
  };
  return contentResponse(request, blobs, content, headers);
}

/** RFC 6266: a plain name for old clients, and the exact one. */
function disposition(fileName: string): string {
  const plain = fileName.replace(/[^\w .()-]/g, "_");
  const exact = encodeURIComponent(fileName).replace(
    /['()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${plain}"; filename*=UTF-8''${exact}`;
}
