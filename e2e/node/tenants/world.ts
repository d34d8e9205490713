/** For tests: a real node on which the tenant watermill has one of everything, and the names that lead to it. */
import { randomUUID } from "node:crypto";
import { formatJob } from "#base/ids.ts";
import { tokenSha256 } from "#edge/identity/bearer.ts";
import { Push } from "#wire/generated/build/bazel/remote/asset/v1/remote_asset.ts";
import { ActionResult } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { ByteStream } from "#wire/generated/google/bytestream/bytestream.ts";
import { Operations } from "#wire/generated/google/longrunning/operations.ts";
import { Builds } from "#wire/generated/millrace/build/v1/builds.ts";
import type { Grant } from "#wire/generated/millrace/work/v1/model.ts";
import { Work } from "#wire/generated/millrace/work/v1/work.ts";
import { encode } from "#wire/message.ts";
import { resultPrinting } from "#doors/build/testing/build.ts";
import { Bench, Lab, metadataOf, shAction, wireDigest } from "#e2e/node/build/execution-lab.ts";
import {
  cachePaths,
  keyText,
  oneTask,
  stageOf,
  submission,
  taskNames,
  template,
  type Claimed,
  type Names,
} from "./names.ts";

/** Part of the contents, names, specs and output of everything that is mill's: no other tenant may ever read it. */
export const secret = `mill-secret-${randomUUID()}`;

/**
 * Mill's own callers, who may do everything in its tenant, and callers that may not see any of it: each in a separate
 * tenant, so that none of them sees what another has done.
 */
const callerRoles = {
  mill: ["watermill", "grinder", ["member", "executor", "viewer", "action-cache-writer"]],
  all: ["bakery", "baker", ["member", "executor", "viewer", "action-cache-writer"]],
  member: ["bakery-2", "kneader", ["member"]],
  viewer: ["bakery-3", "looker", ["viewer"]],
  // Has the name of mill's executor: two tenants may each have one.
  executor: ["bakery-4", "grinder", ["executor"]],
  cache: ["bakery-5", "porter", ["cache-writer"]],
} as const;

export type CallerName = keyof typeof callerRoles | "nobody";
export const foreigners = ["all", "member", "viewer", "executor", "cache", "nobody"] as const;
export const tokenOf = Object.fromEntries(Object.keys(callerRoles).map((name) => [name, randomUUID()]));
export const executorName = (caller: CallerName): string => (caller === "nobody" ? "x" : callerRoles[caller][1]);
export const tenantName = (caller: CallerName): string => (caller === "nobody" ? "x" : callerRoles[caller][0]);

export const tokens = Object.entries(callerRoles).map(([caller, [tenant, name, roles]]) => ({
  name,
  tenant,
  roles,
  sha256: tokenSha256(tokenOf[caller] ?? ""),
}));

/** As long as names of things that do not exist. */
const poolName = `p${randomUUID().replaceAll("-", "").slice(0, 28)}`;

export class World implements AsyncDisposable {
  readonly #lab: Lab;
  readonly #running: Promise<unknown>[] = [];
  readonly mill: Bench;

  private constructor(lab: Lab) {
    this.#lab = lab;
    this.mill = new Bench(lab.client(tokenOf["mill"]));
  }

  static async open(): Promise<World> {
    const lab = await Lab.open({
      cluster: { shards: 1 },
      edge: { listen: ["127.0.0.1:0"], identity: { tokens } },
      node: { stopWithin: "100ms" },
      worker: { slots: 4, labels: [] },
      pools: [{ kind: "external", name: poolName, tenant: "watermill", max: 3, templates: [{ runsOn: ["own"] }] }],
    });
    return new World(lab);
  }

  bench(caller: CallerName): Bench {
    return new Bench(this.#lab.client(tokenOf[caller]));
  }

  get url(): string {
    return `http://127.0.0.1:${this.#lab.node?.edgePorts[0] ?? 0}`;
  }

  async http(caller: CallerName, method: string, path: string, init: RequestInit = {}): Promise<Response> {
    const token = tokenOf[caller];
    const headers = new Headers(init.headers);
    if (token !== undefined) headers.set("authorization", `Bearer ${token}`);
    return await fetch(`${this.url}${path}`, { method, ...init, headers, signal: AbortSignal.timeout(30_000) });
  }

  async fill(): Promise<Names> {
    const work = await this.#work();
    const bytes = Buffer.from(`${secret} in a blob`);
    const blob = await this.mill.put(bytes);
    const tree = await this.mill.tree({ "a/file": secret });
    const action = await this.mill.sh(`echo ${secret}`);
    const { name: endedOperation } = await this.mill.executeFor(`//${secret}`, action);
    await this.mill.execute(await this.mill.sh(`echo ${secret} again`));
    const running = await this.#runs();
    const builds = await this.#builds();
    const uri = `https://files.example/${randomUUID()}`;
    const pushed = { instanceName: "", uris: [uri], qualifiers: [], referencesBlobs: [], referencesDirectories: [] };
    await this.mill.grpc.unary(Push.methods.pushBlob, { ...pushed, blobDigest: blob, digestFunction: 0 });
    await this.mill.grpc.unary(Push.methods.pushDirectory, { ...pushed, rootDirectoryDigest: tree, digestFunction: 0 });
    const pages = await this.mill.grpc.unary(Operations.methods.listOperations, {
      filter: "",
      pageSize: 1,
      pageToken: "",
      name: "operations",
    });
    const uncached = await this.mill.sh(`echo ${secret} never run`);
    return {
      ...work,
      blob,
      bytes,
      tree,
      action,
      uncached,
      ...(await this.#uploads()),
      ...running,
      endedOperation,
      ...builds,
      operationsPage: pages.nextPageToken,
      uri,
      ...(await this.#entries()),
      secret: await this.#secret(),
      schedule: await this.#schedule(),
      webhook: await this.#webhook(),
      pool: poolName,
    };
  }

  async #work() {
    const [requestKey, mergeKey, subscriber] = [randomUUID(), randomUUID(), randomUUID()];
    const label = `own=${randomUUID()}`;
    const tasks = {
      template: template("own.work", "own=work"),
      tasks: taskNames.map((key) => ({ key, spec: secret })),
    };
    const plan = { kind: "own.plan", requires: ["plan=own"], leaseMs: 600_000, attemptsMax: 3, deadlineMs: 600_000 };
    const stages = [stageOf("tasks", { tasks }), stageOf("planned", { plan })];
    const named = { name: secret, spec: secret, requestKey, subscriber, leaveGraceMs: 600_000 };
    const { job } = await this.mill.grpc.unary(Work.methods.submit, submission("watermill", stages, named));
    await this.mill.grpc.unary(Work.methods.submit, submission("watermill", oneTask(label), { mergeKey }));
    const reserving = { prefer: [], count: 20, start: false, startPure: false, nonce: randomUUID() };
    const offers = ["own=work", "plan=own"];
    const { grants } = await this.mill.grpc.unary(Work.methods.reserve, {
      shard: 0,
      executor: "grinder",
      offers,
      ...reserving,
    });
    const claimed = (found: Grant | undefined): Claimed => ({ task: found?.task ?? 0, token: found?.token ?? 0 });
    const byKey = Object.fromEntries(taskNames.map((key) => [key, claimed(grants.find((one) => one.key === key))]));
    const done = { payload: secret, digests: [] };
    await this.mill.grpc.unary(Work.methods.commit, {
      shard: 0,
      executor: "grinder",
      ...(byKey["invalidate"] as Claimed),
      result: done,
    });
    const plans = { ...byKey, plan: claimed(grants.find(({ planning }) => planning)) } as Names["tasks"];
    const keys = { requestKey, mergeKey, subscriber, label };
    return { tenant: "watermill", job, jobId: formatJob(0, job), tasks: plans, executor: "grinder", ...keys };
  }

  /** An action that prints and goes on until the node stops. */
  async #runs(): Promise<Pick<Names, "operation" | "stream">> {
    const action = await this.mill.sh(`echo ${secret}; sleep 300`);
    const runs = Promise.withResolvers<Pick<Names, "operation" | "stream">>();
    const follow = async (): Promise<void> => {
      for await (const told of this.mill.stream(action)) {
        const { stdoutStreamName: stream } = metadataOf(told);
        if (stream !== "") runs.resolve({ operation: told.name, stream });
      }
    };
    this.#running.push(follow().catch(runs.reject));
    return await runs.promise;
  }

  async #builds(): Promise<Pick<Names, "build" | "buildRequest" | "buildsPage">> {
    const buildRequest = randomUUID();
    const value = {
      name: secret,
      instanceName: "",
      actions: [shAction("slow", `echo ${secret}; sleep 300`)],
      deadlineMs: 0,
    };
    const { submitBuild, listBuilds, watchBuild } = Builds.methods;
    const ask = (requestId: string) =>
      this.mill.grpc.unary(submitBuild, { requestId, priority: 0, what: { kind: "build", value } });
    const { buildId: build } = await ask(buildRequest);
    await ask(randomUUID());
    for await (const { changed } of this.mill.grpc.serverStream(watchBuild, { buildId: build }))
      if (changed.some(({ stdoutStreamName }) => stdoutStreamName !== "")) break;
    const { nextPageToken } = await this.mill.grpc.unary(listBuilds, { pageSize: 1, pageToken: "" });
    return { build, buildRequest, buildsPage: nextPageToken };
  }

  /** One that was interrupted in the middle. */
  async #uploads(): Promise<Pick<Names, "upload" | "uploadRest">> {
    const bytes = Buffer.from(`${secret} sent in two halves`);
    const { hash, sizeBytes } = wireDigest(bytes);
    const upload = `uploads/${randomUUID()}/blobs/${hash}/${sizeBytes}`;
    const half = async function* () {
      yield { resourceName: upload, writeOffset: 0, finishWrite: false, data: bytes.subarray(0, 20) };
    };
    await this.mill.grpc.clientStream(ByteStream.methods.write, half());
    return { upload, uploadRest: { offset: 20, data: bytes.subarray(20) } };
  }

  /** In each of the HTTP caches, and a rule that revokes entries. */
  async #entries(): Promise<Pick<Names, "key" | "ac" | "rule">> {
    const key = keyText();
    for (const path of cachePaths(key)) {
      const put = await this.http("mill", "PUT", path, { body: `${secret} at ${path}` });
      if (put.status >= 300) throw new Error(`PUT ${path}: ${put.status} ${await put.text()}`);
    }
    const result = Uint8Array.from(encode(ActionResult, resultPrinting(secret)));
    await this.http("mill", "PUT", `/ac/${key}`, { body: result });
    const { hash } = await this.mill.put(`${secret} by hash`);
    const rules = await this.http("mill", "POST", `/v1/build-cache/rules?space=${secret}`);
    const { id } = (await rules.json()) as { id: string };
    return { key, ac: hash, rule: id };
  }

  async #secret(): Promise<string> {
    const name = randomUUID();
    const headers = { "content-type": "application/json" };
    const init = { body: JSON.stringify({ value: secret }), headers };
    const put = await this.http("mill", "PUT", `/v1/secrets/${name}`, init);
    if (put.status !== 200) throw new Error(`PUT a secret: ${put.status} ${await put.text()}`);
    return name;
  }

  /** It sends nothing: no job comes through its door. */
  async #webhook(): Promise<string> {
    const name = randomUUID();
    const body = JSON.stringify({ url: `https://hooks.invalid/${secret}`, doors: ["none"] });
    const headers = { "content-type": "application/json" };
    const put = await this.http("mill", "PUT", `/v1/webhooks/${name}`, { headers, body });
    if (put.status !== 200) throw new Error(`PUT a webhook: ${put.status} ${await put.text()}`);
    return name;
  }

  /** By the operator, who alone may have command lines run. */
  async #schedule(): Promise<string> {
    const name = randomUUID();
    const put = await fetch(`${this.url}/v1/schedules/${name}?tenant=watermill`, {
      method: "PUT",
      headers: { "content-type": "application/json", authorization: `Bearer ${this.#lab.node?.owner ?? ""}` },
      body: JSON.stringify({ cron: "0 0 1 1 *", command: ["echo", secret] }),
    });
    if (put.status !== 200) throw new Error(`PUT a schedule: ${put.status} ${await put.text()}`);
    return name;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lab[Symbol.asyncDispose]();
    await Promise.all(this.#running);
  }
}
