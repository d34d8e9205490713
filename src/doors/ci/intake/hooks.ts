/**
 * Takes webhooks: `POST /ci/hooks/{tenant}/{owner}/{name}`. What is not signed with the repository's secret is refused
 * alike, whether or not there is such a repository.
 */
import { randomBytes } from "node:crypto";
import { isFault } from "#base/fault.ts";
import type { RepositoryBook } from "#sources/book.ts";
import type { Vault } from "#vault/vault.ts";
import type { Deliveries } from "./deliveries.ts";
import { headingOf, isSigned, payloadIn } from "./forge.ts";

export type HookPorts = {
  readonly book: Pick<RepositoryBook, "get">;
  readonly vault: Pick<Vault, "read" | "set" | "remove">;
  readonly deliveries: Pick<Deliveries, "accept">;
};

const hooksPath = "/ci/hooks/";
/** What GitHub sends at most. */
const bodyBytesMax = 25 * 1024 * 1024;
const readMsMax = 30_000;
/** Bodies that are being read, by anybody: they are in memory until they are checked. */
const atOnceMax = 16;

/** No workflow can name it: secrets of jobs are those below `ci/`. */
const secretName = (repository: string): string => `ci-hook/${repository.toLowerCase()}`;

export const hookPath = (tenant: string, repository: string): string =>
  `${hooksPath}${encodeURIComponent(tenant)}/${repository}`;

export async function newHookSecret(ports: HookPorts, tenant: string, repository: string, by: string): Promise<string> {
  const secret = randomBytes(32).toString("base64url");
  await ports.vault.set(tenant, secretName(repository), secret, by);
  return secret;
}

export const removeHookSecret = (ports: HookPorts, tenant: string, repository: string): Promise<boolean> =>
  ports.vault.remove(tenant, secretName(repository));

/** Undefined for other paths. */
export function takeHook(ports: HookPorts): (request: Request) => Promise<Response> | undefined {
  let reading = 0;
  return (request) => {
    const { pathname } = new URL(request.url);
    if (!pathname.startsWith(hooksPath)) return undefined;
    if (request.method !== "POST") return Promise.resolve(answer(405, "webhooks are sent with POST"));
    if (reading >= atOnceMax) return Promise.resolve(answer(503, "too many webhooks at once: send it again", 5));
    reading += 1;
    return taken(ports, request, pathname).finally(() => (reading -= 1));
  };
}

async function taken(ports: HookPorts, request: Request, pathname: string): Promise<Response> {
  const parts = pathname.slice(hooksPath.length).split("/").map(decoded);
  const [tenant, owner, name, ...rest] = parts;
  const heading = headingOf(request.headers);
  if (!heading) return answer(400, "these are not the headers of a webhook of GitHub, Gitea, Forgejo or GitLab");
  if (!tenant || !owner || !name || rest.length > 0) return refused();
  const body = await bodyOf(request);
  if (!body)
    return answer(413, `a webhook has at most ${bodyBytesMax} bytes, and comes within ${readMsMax / 1000} seconds`);
  const repository = `${owner}/${name}`;
  // read in any case, so that answers do not tell which repositories there are
  const [known, secret] = [
    await ports.book.get(tenant, repository),
    await ports.vault.read(tenant, secretName(repository)),
  ];
  const isRight = isSigned(heading.forge, request.headers, body, secret ?? randomBytes(32));
  if (!known || !secret || !isRight) return refused();
  const payload = payloadIn(request.headers.get("content-type") ?? "", body);
  if (!payload) return answer(400, "the body is no JSON object");
  if (heading.event === "ping") return answer(200, "pong");
  try {
    const { created, name: delivery } = await ports.deliveries.accept(tenant, {
      repository: known.name,
      ...heading,
      payload,
    });
    return Response.json({ delivery, duplicate: !created }, { status: created ? 202 : 200 });
  } catch (error) {
    if (isFault(error, "exhausted")) return answer(503, "too many deliveries wait: send it again later", 60);
    throw error;
  }
}

const refused = (): Response =>
  answer(401, "the webhook is not signed with the secret of a repository that is registered");

function answer(status: number, error: string, retryAfterS?: number): Response {
  const headers = retryAfterS === undefined ? {} : { "retry-after": String(retryAfterS) };
  return Response.json(status < 400 ? { said: error } : { error }, { status, headers });
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}

/** Undefined for what is too long or takes too long. */
async function bodyOf(request: Request): Promise<Uint8Array | undefined> {
  if (Number(request.headers.get("content-length") ?? 0) > bodyBytesMax) return undefined;
  const late = new Promise<undefined>((resolve) => void setTimeout(() => resolve(undefined), readMsMax).unref());
  return await Promise.race([late, readAll(request)]);
}

async function readAll(request: Request): Promise<Uint8Array | undefined> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  if (!request.body) return new Uint8Array();
  for await (const part of request.body) {
    bytes += part.length;
    if (bytes > bodyBytesMax) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts);
}
