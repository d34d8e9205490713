/**
 * Every gRPC method, every HTTP route and every command of a real node, called by callers of another tenant with names
 * of things that exist and of things that do not: the answers are the same, word for word, and reveal nothing of the
 * other tenant. The list comes from the node and from its tables, so that anything new needs a row here.
 */
import { deepEqual, equal, ok } from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { formatTask } from "#base/ids.ts";
import { GrpcError } from "#grpc/status.ts";
import { commandTable } from "#shard/work/commands.ts";
import type { Any } from "#wire/generated/google/protobuf/any.ts";
import { ErrorInfo } from "#wire/generated/google/rpc/error_details.ts";
import { ServerReflection } from "#wire/generated/grpc/reflection/v1/reflection.ts";
import { Builds } from "#wire/generated/millrace/build/v1/builds.ts";
import { Operations } from "#wire/generated/google/longrunning/operations.ts";
import { Work } from "#wire/generated/millrace/work/v1/work.ts";
import { decode } from "#wire/message.ts";
import { grpcRows, services } from "./grpc.ts";
import { httpRouteNames, httpRows, type HttpCaller } from "./http.ts";
import { absentNames, type Names } from "./names.ts";
import type { Case, GrpcCaller } from "./row.ts";
import { executorName, foreigners, secret, tenantName, World, type CallerName } from "./world.ts";

type Caller = GrpcCaller & HttpCaller;

const infoUrl = `type.googleapis.com/${ErrorInfo.typeName}`;

/** Fields that differ with every call, or with the time. */
const fleeting = new Set(["stamp", "epoch", "seq", "nowMs", "seenAgoMs", "remainingMs", "expiresInMs", "stateBytes"]);

/** With a placeholder for each name that the caller itself gave. */
function without(named: Names, value: unknown): unknown {
  const { job, tasks, bytes: _bytes, uploadRest: _rest, executor: _executor, ...texts } = named;
  const taskNos = Object.entries(tasks).map(([name, { task }]) => [task, `<${name}>`] as const);
  const numbers: Readonly<Record<string, ReadonlyMap<number, string>>> = {
    job: new Map([[job, "<job>"]]),
    task: new Map(taskNos),
  };
  const words = [
    ...Object.entries(texts).map(([name, text]) => [typeof text === "string" ? text : text.hash, `<${name}>`] as const),
    ...taskNos.map(([task, name]) => [formatTask(0, task), name] as const),
    // An operation can also be named by its job alone.
    ...[named.operation, named.endedOperation].map(
      (name) => [name.slice(name.lastIndexOf("/") + 1), "<its job>"] as const,
    ),
  ]
    .filter(([text]) => text !== "")
    .toSorted(([a], [b]) => b.length - a.length);
  const plain = (text: string): string => words.reduce((said, [name, word]) => said.replaceAll(name, word), text);
  const walk = (given: unknown, field = ""): unknown => {
    if (typeof given === "string") return numbers[field]?.get(Number(given)) ?? plain(given);
    if (typeof given === "number") return numbers[field]?.get(given) ?? given;
    if (given instanceof Uint8Array) return plain(Buffer.from(given).toString("latin1"));
    if (given instanceof Map) return walk(Object.fromEntries(given));
    if (Array.isArray(given)) return given.map((one) => walk(one));
    if (typeof given !== "object" || given === null) return given;
    // In packed form a number's length would show: it is compared as it is decoded.
    if ("typeUrl" in given && given.typeUrl === infoUrl)
      return walk(decode(ErrorInfo, (given as unknown as Any).value));
    const entries = Object.entries(given).filter(([name]) => !fleeting.has(name));
    return Object.fromEntries(entries.map(([name, one]) => [name, walk(one, name)]));
  };
  return walk(value);
}

async function outcomeOf(run: () => Promise<unknown>): Promise<unknown> {
  try {
    return { answer: await run() };
  } catch (error) {
    if (!(error instanceof GrpcError)) throw error;
    const { code, message, details } = error;
    return { code, message, details };
  }
}

describe(
  "a tenant's things",
  { skip: process.platform !== "linux" && "needs linux: the sandbox", timeout: 120_000 },
  () => {
    let world: World;
    let real: Names;
    const callers = new Map<CallerName, Caller>();

    before(async () => {
      world = await World.open();
      real = await world.fill();
      for (const name of ["mill", ...foreigners] as const)
        callers.set(name, {
          grpc: world.bench(name).grpc,
          executor: executorName(name),
          tenant: tenantName(name),
          http: (method, path, init) => world.http(name, method, path, init),
        });
    });
    after(async () => await world[Symbol.asyncDispose]());

    const callerOf = (name: CallerName): Caller => {
      const caller = callers.get(name);
      ok(caller);
      return caller;
    };

    /** The caller's answer, without its own names. */
    async function told(one: Case<Caller>, caller: CallerName, named: Names): Promise<string> {
      const outcome = await outcomeOf(() => one.run(callerOf(caller), named));
      return JSON.stringify(submitted(without(named, outcome)));
    }

    /** HTTP first: the last gRPC rows upload bytes and builds, which their callers may rightly see from then on. */
    const cases = (): readonly (readonly [string, Case<Caller>])[] => [
      ...Object.entries(httpRows).flatMap(([route, all]) =>
        all.map((one) => [`${route} ${one.what ?? ""}`, one] as const),
      ),
      ...grpcRows.flatMap(({ method: { path }, cases: all }) =>
        all.map((one) => [`${path} ${one.what ?? ""}`, one] as const),
      ),
    ];

    test("every method, route and command that the node serves has a row", async () => {
      const method = ServerReflection.methods.serverReflectionInfo;
      const asked = (async function* () {
        yield { host: "", messageRequest: { kind: "listServices", value: "" } as const };
      })();
      const served: string[] = [];
      for await (const { messageResponse } of callerOf("mill").grpc.duplex(method, asked))
        if (messageResponse?.kind === "listServicesResponse")
          served.push(...messageResponse.value.service.map(({ name }) => name));
      deepEqual(services.map(({ typeName }): string => typeName).toSorted(), served.toSorted());
      const paths = services.flatMap((service) => Object.values(service.methods).map(({ path }): string => path));
      deepEqual([...new Set(grpcRows.map((row) => row.method.path))].toSorted(), paths.toSorted());
      for (const { method: command } of Object.values(commandTable)) ok(paths.includes(command.path), command.path);
      deepEqual(Object.keys(httpRows).toSorted(), httpRouteNames().toSorted());
    });

    /** What is wrong with the caller's answer, or undefined. */
    async function toldOf(one: Case<Caller>, caller: CallerName): Promise<string | undefined> {
      const found = await told(one, caller, real);
      const absent = await told(one, caller, absentNames(real));
      const isRefused = /"code":(7|16)\b|"status":(401|403)\b/.test(found);
      if (one.answers && one.answers.includes(caller) === isRefused)
        return `${caller} is ${isRefused ? "refused" : "answered"}: ${found}`;
      if (found.includes(secret) || found.includes("watermill")) return `${caller} is told ${found}`;
      if (one.empty === true && /"answer":.*(:"[^"]|\[[^\]])/.test(found)) return `${caller} is told ${found}`;
      return found === absent ? undefined : `${caller}:\n    of mill's: ${found}\n    of none:   ${absent}`;
    }

    test("look to callers of another tenant as if they did not exist, and stay unchanged", async () => {
      const before = await state();
      const wrong: string[] = [];
      for (const [name, one] of cases())
        for (const why of await Promise.all(foreigners.map((caller) => toldOf(one, caller))))
          if (why !== undefined) wrong.push(`${name}, ${why}`);
      equal(wrong.join("\n"), "");
      deepEqual(await state(), before);
    });

    test("can be distinguished from missing ones by their own tenant, so the rows above could fail", async () => {
      const vacuous: string[] = [];
      for (const [name, one] of cases()) {
        if (one.alike !== undefined) continue;
        const found = await told(one, "mill", real);
        const absent = await told(one, "mill", absentNames(real));
        if (found === absent) vacuous.push(`${name}: ${found}`);
      }
      deepEqual(vacuous, []);
    });

    /** What mill sees of its own. */
    async function state(): Promise<unknown> {
      const { grpc } = callerOf("mill");
      const job = await grpc.unary(Work.methods.getJob, { shard: 0, job: real.job });
      const inputs = await grpc.unary(Work.methods.planInputs, { shard: 0, ...real.tasks.plan, limit: 10 });
      const operation = await grpc.unary(Operations.methods.getOperation, { name: real.operation });
      const build = await grpc.unary(Builds.methods.getBuild, { buildId: real.build, withActions: true });
      const { jobs } = await grpc.unary(Work.methods.listJobs, { shard: 0, limit: 100, tags: [] });
      const listed = jobs.filter(({ endedAtMs }) => endedAtMs === undefined); // the others leave the shard in time
      const entries = await (await world.http("mill", "GET", "/v1/build-cache/entries?limit=1000")).text();
      const rules = await (await world.http("mill", "GET", "/v1/build-cache/rules")).text();
      const schedules = await (await world.http("mill", "GET", "/v1/schedules")).text();
      const secrets = await (await world.http("mill", "GET", "/v1/secrets")).text();
      return without(absentNames(real), { job, inputs, operation, build, listed, entries, rules, secrets, schedules });
    }
  },
);

/** What a caller submits for itself has its own number: only whether it was started counts. */
function submitted(told: unknown): unknown {
  const { answer } = told as { answer?: Record<string, unknown> };
  if (answer === undefined || !("created" in answer)) return told;
  const { job: _job, buildId: _build, ...rest } = answer;
  return { answer: rest };
}
