/** A real node behind its port: the work protocol for operators, members, executors and strangers. */
import { deepEqual, equal, match, notEqual, ok, rejects } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdtemp } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Random } from "#base/random.ts";
import { isFault } from "#base/fault.ts";
import { parseJob } from "#base/ids.ts";
import { until } from "#testing/until.ts";
import { tokenSha256 } from "#edge/identity/bearer.ts";
import { grpcCode } from "#grpc/status.ts";
import type { CommandOf } from "#kernel/model/command.ts";
import type { PlanSpec, StageSpec, TaskSet } from "#kernel/model/model.ts";
import { createClient, type Order, type WorkClient } from "#shard/client/client.ts";
import { createGrpcTransport, type GrpcTransport } from "#shard/transport/grpc-transport.ts";
import { isRejected } from "#shard/work/rejected.ts";
import { createRouter } from "#shard/router/router.ts";
import { startNode, type Running } from "./compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { edgeAddressDefault, parseEdgeAddress } from "#app/config/edge-config.ts";
import { orderFromCommand } from "#app/job-order.ts";
import { systemClock as clock } from "#door/system-clock.ts";
import { clearAway } from "#testing/clear-away.ts";

const secrets = {
  ops: "ops-secret-0123456789-0123456789-0123456789",
  anna: "anna-secret-0123456789-0123456789-0123456789",
  berta: "berta-secret-0123456789-0123456789-012345678",
  runner: "runner-secret-0123456789-0123456789-01234567",
  namesake: "namesake-secret-0123456789-0123456789-0123456",
} as const;

const tokens = [
  { name: "ops", tenant: "*", roles: ["operator"], sha256: tokenSha256(secrets.ops) },
  { name: "anna", tenant: "a", roles: ["member"], sha256: tokenSha256(secrets.anna) },
  { name: "berta", tenant: "b", roles: ["member"], sha256: tokenSha256(secrets.berta) },
  { name: "runner", tenant: "a", roles: ["executor"], sha256: tokenSha256(secrets.runner) },
  { name: "runner", tenant: "b", roles: ["executor"], sha256: tokenSha256(secrets.namesake) },
];

const never = new AbortController().signal;

/** Work of a caller's own kinds. */
const ownOrder = (work: Pick<StageSpec, "tasks"> | Pick<StageSpec, "plan">): Order => ({
  shardKey: randomUUID(),
  tenant: "a",
  door: "own",
  name: "own work",
  payloadHash: "hash",
  priority: 0,
  spec: "the spec",
  deadlineMs: 60_000,
  stages: [{ name: "one", needs: [], after: "success", failFast: true, mayFail: false, parallelMax: 0, ...work }],
});

const ownPlan = (kind: string): PlanSpec => ({
  kind,
  requires: ["plan=own"],
  leaseMs: 10_000,
  attemptsMax: 3,
  deadlineMs: 60_000,
});

const ownTasks = (kind: string): TaskSet => ({
  template: {
    kind,
    requires: ["own=work"],
    leaseMs: 10_000,
    attemptsMax: 3,
    retryOn: "infrastructure",
    backoffMs: 100,
    backoffMsMax: 1_000,
    queueMs: 60_000,
    attemptMs: 60_000,
    effects: "pure",
    speculate: false,
    graceMs: 0,
  },
  tasks: [{ key: "1", spec: "" }],
});

describe("where a node's port is", () => {
  const small = { cluster: { shards: 1 }, journal: { kind: "memory" }, blobs: { kind: "memory" } } as const;

  async function started(edge: object | undefined, body: (running: Running, said: readonly string[]) => unknown) {
    const path = await mkdtemp(join(tmpdir(), "millrace-where-"));
    const said: string[] = [];
    try {
      const config = Config.parse({ ...small, worker: { enabled: false }, ...(edge && { edge }) });
      const running = await startNode(config, dataFolder(path), { log: (line) => said.push(line) });
      try {
        await body(running, said);
      } finally {
        await running.stop();
      }
    } finally {
      clearAway(path);
    }
  }

  test("on loopback unless configured; on a free port, with a log line, if that one is taken", async () => {
    const { host, port } = parseEdgeAddress(edgeAddressDefault);
    const other = createServer();
    // Another program may have it already: then there is nothing to do.
    await new Promise<void>((there) => other.once("error", () => there()).listen(port, host, there));
    try {
      await started(undefined, async ({ edgeAddresses }, said) => {
        const [address = ""] = edgeAddresses;
        match(address, /^127\.0\.0\.1:\d+$/);
        notEqual(address, edgeAddressDefault);
        ok(said.some((line) => line.includes(edgeAddressDefault) && line.includes(address)));
        await until("it is ready", async () => (await fetch(`http://${address}/readyz`)).ok);
      });
    } finally {
      other.close();
    }
  });

  test("at the configured address, or not at all", async () => {
    const other = createServer();
    await new Promise<void>((there) => other.listen(0, "127.0.0.1", there));
    try {
      const taken = `127.0.0.1:${(other.address() as AddressInfo).port}`;
      const refused = started({ listen: [taken] }, () => ok(false));
      await rejects(refused, (error) => isFault(error, "exhausted") && error.doing === "listen");
    } finally {
      other.close();
    }
    await started({ listen: [] }, ({ edgeAddresses }) => deepEqual(edgeAddresses, []));
    await started({ listen: ["localhost:0"] }, ({ edgeAddresses }) => match(edgeAddresses.join(), /^localhost:\d+$/));
  });
});

describe("a node's port", () => {
  let path: string;
  let running: Running;
  const transports: GrpcTransport[] = [];

  before(async () => {
    path = await mkdtemp(join(tmpdir(), "millrace-edge-"));
    const config = Config.parse({
      cluster: { shards: 2 },
      journal: { kind: "memory" },
      blobs: { kind: "memory" },
      edge: { listen: ["127.0.0.1:0"], identity: { tokens } },
    });
    running = await startNode(config, dataFolder(path), { log: () => {} });
  });
  after(async () => {
    await Promise.all(transports.map((transport) => transport.close()));
    await running.stop();
    clearAway(path);
  });

  const address = (): string => `grpc:127.0.0.1:${running.edgePorts[0] ?? 0}`;

  function transportFor(who: keyof typeof secrets | undefined): GrpcTransport {
    const metadata = who === undefined ? [] : ([["authorization", `Bearer ${secrets[who]}`]] as const);
    const transport = createGrpcTransport({ clock, via: "router", metadata });
    transports.push(transport);
    return transport;
  }

  function clientFor(who: keyof typeof secrets): WorkClient {
    const transport = transportFor(who);
    const random = new Random(who);
    const ownerships = async () =>
      (await transport.map(address(), never)).ownerships.map((one) => ({ ...one, address: address() }));
    const router = createRouter({ ownerships, transport, clock, random, options: { deadlineMs: 5_000 } });
    return createClient({ router, directory: running.journal, random });
  }

  test("takes a job over gRPC, runs it, and tells how it goes", async () => {
    const work = clientFor("ops");
    const { jobId, created } = await work.submit(
      orderFromCommand(["/bin/sh", "-c", "echo over gRPC"], { tenant: "a" }),
    );
    ok(created);
    const kinds: string[] = [];
    for await (const { kind } of work.watch(jobId, never)) kinds.push(kind);
    equal(kinds.at(-1), "end");
    const { view } = await work.job(jobId);
    equal(view.phase, "SUCCEEDED");
    ok(view.tasks[0]?.result?.payload.includes("over gRPC"));
  });

  test("keeps tenants apart", async () => {
    const order = ownOrder({ tasks: ownTasks("own.work") });
    const { jobId } = await clientFor("anna").submit(order);
    const berta = clientFor("berta");
    await rejects(berta.job(jobId), (error) => isRejected(error, "job-unknown") || isFault(error, "not-found"));
    await rejects(berta.cancel(jobId, "mine now"), (error) => isRejected(error));
    await rejects(berta.submit({ ...order, tenant: "a" }), (error) => isFault(error));
    await rejects(async () => {
      for await (const _message of berta.watch(jobId, never));
    });
    equal((await clientFor("ops").job(jobId)).view.tenant, "a");
  });

  test("lets executors work in their own name and tenant only", async () => {
    const transport = transportFor("runner");
    const reserve = (given: Partial<CommandOf<"reserve">>) =>
      transport.request(
        address(),
        {
          kind: "command",
          shard: 0,
          command: {
            kind: "reserve",
            executor: "runner/1",
            offers: ["nothing=here"],
            prefer: [],
            count: 1,
            start: true,
            nonce: "n1",
            ...given,
          },
        },
        never,
      );
    const mine = await reserve({});
    deepEqual(mine.kind === "reply" && mine.reply, { grants: [] });
    await rejects(reserve({ executor: "somebody" }), (error) => isFault(error));
    await rejects(reserve({ tenant: "b" }), (error) => isFault(error));
    const order = ownOrder({ tasks: ownTasks("own.work") });
    await rejects(clientFor("runner").submit(order), (error) => isFault(error));
    await rejects(clientFor("anna").reserve(0, { executor: "anna", offers: ["x=y"], count: 1 }), (error) =>
      isFault(error),
    );
  });

  const denied = (error: unknown): boolean => isFault(error) && error.facts["status"] === grpcCode.permissionDenied;

  test("runs commands as its own user for operators only, also if others planned them", async () => {
    const command = orderFromCommand(["/bin/sh", "-c", "true"], { tenant: "a" });
    await rejects(clientFor("anna").submit(command), denied);
    const gate = command.stages.map((stage) => ({ ...stage, tasks: undefined, plan: ownPlan("shell.gate") }));
    await rejects(clientFor("anna").submit({ ...command, stages: gate as never }), denied);
    const { jobId } = await clientFor("anna").submit(ownOrder({ plan: ownPlan("own.plan") }));
    const runner = clientFor("runner");
    const [claim] = await reserved(runner, jobId, "plan=own");
    ok(claim);
    const plan = { kind: "tasks", set: ownTasks("shell.command") } as const;
    await rejects(runner.recordPlan({ ...claim, executor: "runner" }, plan), denied);
    await runner.recordPlan({ ...claim, executor: "runner" }, { kind: "skip", reason: "nothing to do" });
  });

  test("leaves it to the build door to say who asked for an action", async () => {
    for (const door of ["build", "builds"])
      await rejects(clientFor("anna").submit({ ...ownOrder({ tasks: ownTasks("own.work") }), door }), denied);
  });

  test("tells executors of the same name apart by their tenants", async () => {
    const { jobId } = await clientFor("anna").submit(ownOrder({ tasks: ownTasks("own.work") }));
    const [runner, namesake] = [clientFor("runner"), clientFor("namesake")];
    const [claim] = await reserved(runner, jobId, "own=work");
    ok(claim);
    const mine = { ...claim, executor: "runner" };
    const { shard } = claim;
    deepEqual((await namesake.renew(shard, "runner", [])).held, []);
    await rejects(namesake.commit(mine, { payload: "forged", digests: [] }), (error) => isRejected(error));
    equal((await runner.renew(shard, "runner", [])).held.length, 1);
    equal(await runner.commit(mine, { payload: "genuine", digests: [] }), true);
    const invalidate = { kind: "invalidate", task: claim.task, generation: claim.generation, reason: "mine" } as const;
    const request = { kind: "command", shard, command: invalidate } as const;
    const refused = await transportFor("namesake").request(address(), request, never);
    deepEqual(refused.kind === "rejected" && refused.rejection.kind, "task-unknown");
    equal((await clientFor("anna").job(claim.jobId)).view.tasks[0]?.result?.payload, "genuine");
  });

  test("does not show the inputs of a plan to another tenant", async () => {
    const { jobId } = await clientFor("anna").submit(ownOrder({ plan: ownPlan("own.plan") }));
    const [runner, namesake] = [clientFor("runner"), clientFor("namesake")];
    const [claim] = await reserved(runner, jobId, "plan=own");
    ok(claim);
    await rejects(namesake.planInputs({ ...claim, executor: "runner" }), (error) => isRejected(error, "task-unknown"));
    equal((await runner.planInputs({ ...claim, executor: "runner" })).spec, "the spec");
  });

  function reserved(client: WorkClient, jobId: string, offer: string) {
    return client.reserve(parseJob(jobId)?.shard ?? 0, {
      executor: "runner",
      offers: [offer],
      count: 1,
      start: true,
      waitMs: 5_000,
    });
  }

  test("stops although a worker waits for work, and its call ends with the reason", async () => {
    const config = Config.parse({
      cluster: { shards: 1 },
      journal: { kind: "memory" },
      blobs: { kind: "memory" },
      edge: { listen: ["127.0.0.1:0"] },
    });
    const stopping = await startNode(config, dataFolder(join(path, "stopping")), { log: () => {} });
    const transport = createGrpcTransport({
      clock,
      via: "router",
      metadata: [["authorization", `Bearer ${stopping.owner}`]],
    });
    transports.push(transport);
    const to = `grpc:127.0.0.1:${stopping.edgePorts[0]}`;
    const wanted = { executor: "e", offers: ["x=y"], prefer: [], count: 1, start: true, nonce: "n" } as const;
    const held = transport.request(
      to,
      { kind: "command", shard: 0, command: { kind: "reserve", ...wanted }, waitMs: 60_000 },
      never,
    );
    const letGo = rejects(held, (error) => isFault(error, "unavailable"));
    await transport.map(to, never); // asked later on the same connection: the other is there
    const startedAtMs = performance.now();
    await stopping.stop();
    await letGo;
    ok(performance.now() - startedAtMs < 10_000);
  });

  test("turns strangers away", async () => {
    const stranger = transportFor(undefined);
    const query = { kind: "query", shard: 0, query: { kind: "stats" } } as const;
    await rejects(stranger.request(address(), query, never), (error) => isFault(error));
    equal((await fetch(`http://127.0.0.1:${running.edgePorts[0]}/metrics`)).status, 401);
    await until("it is ready", async () => (await fetch(`http://127.0.0.1:${running.edgePorts[0]}/readyz`)).ok);
  });
});
