/**
 * For tests: the endpoints of a Kubernetes API server that pools use, with its conventions: resource versions, pages by
 * continue, watches that start at a version and end, 410 Gone for what was compacted, 409 for names that are taken
 * and for preconditions, deletion in two steps, owners. Only what a Role allows is served.
 */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { DeleteOptions, PodBody, SecretBody } from "./objects.ts";
import type { EventObject, PodObject, PodStatus, SecretObject } from "./objects.ts";

export type Rule = { readonly resources: readonly string[]; readonly verbs: readonly string[] };

export type DoubleOptions = {
  readonly namespace: string;
  readonly token: string;
  readonly rules: readonly Rule[];
  /** How many changes a watch can go back. */
  readonly kept?: number;
  /** Pages are never longer. */
  readonly pageMax?: number;
};

/** What runs pods: the double's nodes. */
export type PodRunner = {
  created(pod: PodObject): void;
  secretCreated(): void;
  /** SIGTERM, and SIGKILL after the grace. */
  terminate(pod: PodObject, graceSeconds: number): void;
};

type Change = { readonly version: number; readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly pod: PodObject };
type Watcher = { readonly matches: (pod: PodObject) => boolean; readonly send: (event: object) => void; end(): void };

class Refused extends Error {
  readonly code: number;
  readonly reason: string;
  constructor(code: number, reason: string, message: string) {
    super(message);
    this.code = code;
    this.reason = reason;
  }
}

export class KubernetesDouble implements AsyncDisposable {
  readonly #options: Required<DoubleOptions>;
  readonly #server: Server;
  readonly pods = new Map<string, PodObject>();
  readonly secrets = new Map<string, SecretObject>();
  readonly events: EventObject[] = [];
  #changes: Change[] = [];
  #version = 1_000;
  #oldest = 1_000;
  readonly #watchers = new Set<Watcher>();
  runner: PodRunner | undefined;
  /** Called before each call is served: may throw, or answer later. */
  before: (verb: string, resource: string, name: string) => Promise<void> | void = () => {};
  /** Called after a change was made and before it is answered: a connection that breaks here has changed something. */
  after: (verb: string, resource: string, name: string) => "answer" | "drop" = () => "answer";
  readonly calls: string[] = [];
  /** The most pods at once, ever. */
  podsMost = 0;
  podsEver = 0;

  constructor(options: DoubleOptions) {
    this.#options = { kept: 5_000, pageMax: 500, ...options };
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.dropWatches();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** As the server does when it restarts. */
  dropWatches(): void {
    for (const watcher of this.#watchers) watcher.end();
  }

  /** Forgets what changed: watches from before get 410 Gone. */
  compact(): void {
    this.#changes = [];
    this.#oldest = this.#version;
  }

  setStatus(uid: string, status: PodStatus, nodeName?: string): void {
    const pod = [...this.pods.values()].find(({ metadata }) => metadata.uid === uid);
    if (!pod) return;
    const spec = { ...pod.spec, ...(nodeName !== undefined && { nodeName }) };
    this.#changed("MODIFIED", { ...pod, spec, status });
  }

  /** The pod is gone from the API, and what it owns with it. */
  removed(uid: string): void {
    const pod = [...this.pods.values()].find(({ metadata }) => metadata.uid === uid);
    if (!pod) return;
    this.pods.delete(pod.metadata.name);
    this.#changed("DELETED", pod);
    this.#collect();
  }

  event(uid: string, type: EventObject["type"], reason: string, message: string): void {
    this.events.push({ uid, type, reason, message, lastTimestamp: new Date().toISOString() });
  }

  /** Deletes the pod as others would: an eviction, `kubectl delete`. */
  deleteByOthers(name: string): void {
    const pod = this.pods.get(name);
    if (pod) this.#delete(pod, undefined);
  }

  /** Secrets whose owner is gone go as well. */
  #collect(): void {
    const uids = new Set([...this.pods.values()].map(({ metadata: { uid } }) => uid));
    for (const [name, { metadata }] of this.secrets)
      if (metadata.ownerReferences?.every(({ uid }) => !uids.has(uid))) this.secrets.delete(name);
  }

  #changed(type: Change["type"], pod: PodObject): void {
    this.#version += 1;
    const now = { ...pod, metadata: { ...pod.metadata, resourceVersion: String(this.#version) } };
    if (type !== "DELETED") this.pods.set(pod.metadata.name, now);
    this.podsMost = Math.max(this.podsMost, this.pods.size);
    this.#changes.push({ version: this.#version, type, pod: now });
    if (this.#changes.length > this.#options.kept)
      this.#oldest = this.#changes.splice(0, this.#changes.length - this.#options.kept).at(-1)?.version ?? this.#oldest;
    for (const { matches, send } of this.#watchers) if (matches(now)) send({ type, object: now });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await this.#answer(request, response);
    } catch (error) {
      const { code, reason, message } =
        error instanceof Refused
          ? error
          : new Refused(500, "InternalError", error instanceof Error ? error.message : "");
      json(response, code, { kind: "Status", apiVersion: "v1", status: "Failure", message, reason, code });
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { namespace, token } = this.#options;
    const url = new URL(request.url ?? "/", "http://double");
    const prefix = `/api/v1/namespaces/${namespace}/`;
    if (request.headers.authorization !== `Bearer ${token}`) throw new Refused(401, "Unauthorized", "Unauthorized");
    if (!url.pathname.startsWith(prefix)) throw new Refused(403, "Forbidden", `forbidden: ${url.pathname}`);
    const [resource = "", name = "", ...more] = url.pathname.slice(prefix.length).split("/");
    if (more.length > 0) throw new Refused(404, "NotFound", "the server could not find the requested resource");
    const isWatch = url.searchParams.get("watch") === "1";
    const verb = verbOf(request.method ?? "", name, isWatch);
    this.calls.push(`${verb} ${resource}${name === "" ? "" : `/${name}`}`);
    if (!this.#options.rules.some(({ resources, verbs }) => resources.includes(resource) && verbs.includes(verb)))
      throw new Refused(
        403,
        "Forbidden",
        `${resource} is forbidden: the account cannot ${verb} resource "${resource}"`,
      );
    await this.before(verb, resource, name);
    const body = verb === "create" || verb === "delete" ? await bodyOf(request) : undefined;
    if (verb === "watch") return this.#watch(url, response);
    const [status, answer] = this.#do(verb, resource, name, { url, body });
    if ((verb === "create" || verb === "delete") && this.after(verb, resource, name) === "drop")
      return void request.socket.destroy();
    json(response, status, answer);
  }

  #do(
    verb: string,
    resource: string,
    name: string,
    { url, body }: { readonly url: URL; readonly body: unknown },
  ): readonly [number, object] {
    if (verb === "list" && resource === "pods") return [200, this.#list(url)];
    if (verb === "list" && resource === "events") return [200, this.#listEvents(url)];
    if (verb === "create" && resource === "pods") return [201, this.#createPod(body)];
    if (verb === "create" && resource === "secrets") return [201, this.#createSecret(body)];
    if (verb === "delete" && resource === "pods") {
      const pod = this.pods.get(name);
      if (!pod) throw new Refused(404, "NotFound", `pods "${name}" not found`);
      return [200, this.#delete(pod, body)];
    }
    throw new Refused(405, "MethodNotAllowed", `no ${verb} of ${resource} here`);
  }

  #createPod(body: unknown): PodObject {
    const made = PodBody.safeParse(body);
    if (!made.success) throw new Refused(422, "Invalid", `Pod is invalid: ${made.error.message}`);
    const { metadata, spec } = made.data;
    if (this.pods.has(metadata.name)) throw new Refused(409, "AlreadyExists", `pods "${metadata.name}" already exists`);
    const kept = { uid: randomUUID(), resourceVersion: "", creationTimestamp: new Date().toISOString() };
    const pod: PodObject = { ...made.data, metadata: { ...metadata, ...kept }, spec, status: { phase: "Pending" } };
    this.podsEver += 1;
    this.#changed("ADDED", pod);
    const now = this.pods.get(metadata.name) as PodObject;
    this.runner?.created(now);
    return now;
  }

  #createSecret(body: unknown): SecretObject {
    const made = SecretBody.safeParse(body);
    if (!made.success) throw new Refused(422, "Invalid", `Secret is invalid: ${made.error.message}`);
    const { metadata } = made.data;
    if (this.secrets.has(metadata.name))
      throw new Refused(409, "AlreadyExists", `secrets "${metadata.name}" already exists`);
    this.#version += 1;
    const kept = {
      uid: randomUUID(),
      resourceVersion: String(this.#version),
      creationTimestamp: new Date().toISOString(),
    };
    const secret: SecretObject = { ...made.data, metadata: { ...metadata, ...kept } };
    this.secrets.set(metadata.name, secret);
    this.#collect(); // an owner that is gone already
    this.runner?.secretCreated();
    return secret;
  }

  /** In two steps, unless nothing of it can be running. */
  #delete(pod: PodObject, body: unknown): PodObject {
    const made = DeleteOptions.safeParse(body ?? { apiVersion: "v1", kind: "DeleteOptions" });
    if (!made.success) throw new Refused(400, "BadRequest", made.error.message);
    const { preconditions, gracePeriodSeconds } = made.data;
    const { name, uid, deletionTimestamp } = pod.metadata;
    if (preconditions && preconditions.uid !== uid)
      throw new Refused(
        409,
        "Conflict",
        `Precondition failed: UID in precondition: ${preconditions.uid}, UID in object meta: ${uid}`,
      );
    const grace = gracePeriodSeconds ?? pod.spec.terminationGracePeriodSeconds;
    const isOver = pod.status.phase === "Succeeded" || pod.status.phase === "Failed";
    if (grace === 0 || isOver || pod.spec.nodeName === undefined) {
      this.runner?.terminate(pod, 0);
      this.removed(uid);
      return pod;
    }
    if (deletionTimestamp === undefined) {
      const leaving = {
        deletionTimestamp: new Date(Date.now() + grace * 1_000).toISOString(),
        deletionGracePeriodSeconds: grace,
      };
      this.#changed("MODIFIED", { ...pod, metadata: { ...pod.metadata, ...leaving } });
      this.runner?.terminate(pod, grace);
    }
    return this.pods.get(name) ?? pod;
  }

  #list(url: URL): object {
    const limit = Math.min(Number(url.searchParams.get("limit") ?? "0") || Infinity, this.#options.pageMax);
    const asked = url.searchParams.get("continue");
    const [version, after] = asked === null ? [this.#version, ""] : readContinue(asked);
    if (version < this.#oldest) throw new Refused(410, "Expired", "The provided continue parameter is too old");
    const all = [...this.pods.values()]
      .filter(selected(url))
      .toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
    const rest = all.filter(({ metadata: { name } }) => name > after);
    const items = rest.slice(0, limit);
    const next =
      rest.length > items.length ? Buffer.from(`${version} ${items.at(-1)?.metadata.name}`).toString("base64") : "";
    const metadata = {
      resourceVersion: String(version),
      ...(next !== "" && { continue: next, remainingItemCount: rest.length - items.length }),
    };
    return { kind: "PodList", apiVersion: "v1", metadata, items };
  }

  #listEvents(url: URL): object {
    const uid = /^involvedObject\.uid=(.+)$/.exec(url.searchParams.get("fieldSelector") ?? "")?.[1];
    const items = this.events
      .filter((event) => uid === undefined || event.uid === uid)
      .map(({ uid: of, ...event }) => ({ ...event, involvedObject: { uid: of }, metadata: {} }));
    return { kind: "EventList", apiVersion: "v1", metadata: { resourceVersion: String(this.#version) }, items };
  }

  #watch(url: URL, response: ServerResponse): void {
    const from = Number(url.searchParams.get("resourceVersion") ?? "0");
    if (from < this.#oldest) throw new Refused(410, "Expired", `too old resource version: ${from} (${this.#oldest})`);
    response.writeHead(200, { "content-type": "application/json", "transfer-encoding": "chunked" });
    const matches = selected(url);
    const send = (event: object): void => void response.write(`${JSON.stringify(event)}\n`);
    for (const { version, type, pod } of this.#changes) if (version > from && matches(pod)) send({ type, object: pod });
    const bookmark = (): void =>
      send({
        type: "BOOKMARK",
        object: { kind: "Pod", apiVersion: "v1", metadata: { resourceVersion: String(this.#version) } },
      });
    const bookmarks = url.searchParams.get("allowWatchBookmarks") === "true" ? setInterval(bookmark, 1_000) : undefined;
    const seconds = Number(url.searchParams.get("timeoutSeconds") ?? "60");
    const timer = setTimeout(() => watcher.end(), seconds * 1_000);
    const watcher: Watcher = {
      matches,
      send,
      end: () => {
        clearInterval(bookmarks);
        clearTimeout(timer);
        this.#watchers.delete(watcher);
        response.end();
      },
    };
    this.#watchers.add(watcher);
    response.on("close", () => watcher.end());
    response.flushHeaders();
  }
}

function verbOf(method: string, name: string, isWatch: boolean): string {
  if (method === "POST") return "create";
  if (method === "DELETE") return name === "" ? "deletecollection" : "delete";
  if (method !== "GET") return method.toLowerCase();
  return name !== "" ? "get" : isWatch ? "watch" : "list";
}

/** `a=b,c=d`, the form that pools use. */
function selected(url: URL): (pod: PodObject) => boolean {
  const wanted = (url.searchParams.get("labelSelector") ?? "").split(",").flatMap((part) => {
    const [key = "", value = ""] = part.split("=");
    return key === "" ? [] : [[key, value] as const];
  });
  return ({ metadata: { labels = {} } }) => wanted.every(([key, value]) => labels[key] === value);
}

function readContinue(text: string): readonly [number, string] {
  const [version = "0", name = ""] = Buffer.from(text, "base64").toString("utf8").split(" ");
  return [Number(version), name];
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  let text = "";
  for await (const part of request) text += String(part);
  try {
    return text === "" ? undefined : JSON.parse(text);
  } catch {
    throw new Refused(400, "BadRequest", "the body is no JSON");
  }
}

function json(response: ServerResponse, status: number, value: object): void {
  if (response.headersSent) return void response.destroy();
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(value));
}
