/** Calls under /v1 for what the services keep: artifacts of runs, and caches of repositories. */
import { z } from "zod";
import { pageFields } from "#http/cursor.ts";
import { endpoint, json, none, type Endpoint } from "#http/endpoint.ts";

const Run = z.string().max(50).describe("The run's id, such as j0-1.");
const Name = z.string().min(1).max(256).describe("The artifact's name.");
const RepositoryName = z.string().max(201).describe("owner/name");
const Time = z.iso.datetime();

export const listRunArtifacts = endpoint({
  method: "GET",
  path: "/v1/runs/{run}/artifacts",
  action: "ci.read",
  about: "Lists the artifacts of a run, the newest first.",
  params: z.object({ run: Run }),
  answer: json(
    z.object({
      artifacts: z.array(
        z.object({
          id: z.int(),
          name: z.string(),
          sizeBytes: z.int(),
          sha256: z.string(),
          type: z.string(),
          createdAt: Time,
          expiresAt: Time,
        }),
      ),
    }),
  ),
});

export const readRunArtifact = endpoint({
  method: "GET",
  path: "/v1/runs/{run}/artifacts/{name}",
  action: "ci.read",
  about: "Downloads an artifact: a zip, or the one file that was uploaded without an archive.",
  params: z.object({ run: Run, name: Name }),
  answer: { kind: "bytes", contentType: "application/octet-stream" },
});

export const removeRunArtifact = endpoint({
  method: "DELETE",
  path: "/v1/runs/{run}/artifacts/{name}",
  action: "ci.run",
  about: "Deletes an artifact.",
  params: z.object({ run: Run, name: Name }),
  answer: none,
});

export const listCaches = endpoint({
  method: "GET",
  path: "/v1/caches",
  action: "ci.read",
  about: "Lists the caches of a repository, the newest first. A page may have fewer entries than asked for.",
  query: z.object({ ...pageFields, repository: RepositoryName }),
  answer: json(
    z.object({
      next: z.string().optional().describe("Give it as `cursor` for the next page; absent on the last."),
      caches: z.array(
        z.object({
          id: z.int(),
          key: z.string(),
          ref: z.string(),
          version: z.string(),
          sizeBytes: z.int(),
          createdAt: Time,
          usedAt: Time,
        }),
      ),
    }),
  ),
});

export const removeCaches = endpoint({
  method: "DELETE",
  path: "/v1/caches",
  action: "ci.run",
  about: "Deletes the caches of a repository that have this key, of one ref or of all.",
  query: z.object({
    repository: RepositoryName,
    key: z.string().min(1).max(512),
    ref: z.string().max(500).optional().describe("Left out: of all refs."),
  }),
  answer: none,
});

export const serviceEndpoints: readonly Endpoint[] = [
  listRunArtifacts,
  readRunArtifact,
  removeRunArtifact,
  listCaches,
  removeCaches,
];
