/**
 * Hostile actions, against a whole node: each is contained, its result says what happened, and the node goes on. In the
 * sandbox and without, as root and, by running this file again, as a plain user.
 */
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import { globSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { grpcCode, GrpcError } from "#grpc/status.ts";
import { freeBytes } from "#worker/process/launcher/disk-guard.ts";
import { boxRoot } from "#worker/sandbox/box.ts";
import {
  ContentAddressableStorage,
  type Digest,
  type ExecuteResponse,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { StringValue } from "#wire/generated/google/protobuf/wrappers.ts";
import { decode } from "#wire/message.ts";
import { until } from "#testing/until.ts";
import { Bench, Lab } from "#e2e/node/build/execution-lab.ts";
import { bwrapMissing } from "#testing/bubblewrap.ts";

const isLinux = process.platform === "linux";
const isRoot = process.getuid?.() === 0;

const secrets = { mill: randomUUID(), bakery: randomUUID() };
const tokens = (["mill", "bakery"] as const).map((name) => ({
  name,
  tenant: name,
  roles: ["member"],
  sha256: createHash("sha256").update(secrets[name]).digest("hex"),
}));

const seconds = (n: number) => ({ seconds: n, nanos: 0 });
const memory = (value: string) => ({ platform: { properties: [{ name: "memory", value }] } });
const salted = (line: string): string => `${line} # ${randomUUID()}`;

/** Command lines of all processes on the machine. */
const commandLines = (): readonly string[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => readQuietly(`/proc/${pid}/cmdline`).replaceAll("\0", " "));

function readQuietly(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** What a result says of how its command was confined. */
type Kept = { sandbox: string; users: string; network: string; groups: string; printedBytesLeftOut?: number };
function keptOf({ result }: ExecuteResponse): Kept {
  const [any] = result?.executionMetadata?.auxiliaryMetadata ?? [];
  return JSON.parse(decode(StringValue, any?.value ?? new Uint8Array()).value) as Kept;
}

const kinds = [
  { kind: "bubblewrap", skip: isLinux ? bwrapMissing() : "needs linux: namespaces" },
  { kind: "plain", skip: !isLinux && "needs linux: /proc" },
] as const;

for (const { kind, skip } of kinds)
  describe(`a hostile action (${kind}, ${isRoot ? "root" : "a plain user"})`, { skip, timeout: 240_000 }, () => {
    let lab: Lab;
    let mill: Bench;
    let bakery: Bench;
    const isBox = kind === "bubblewrap";
    /** Otherwise it runs as the node's own user, and the result says so. */
    const isApart = isBox || isRoot;

    before(async () => {
      lab = await Lab.open({
        // A node whose actions run as its own user serves no second tenant.
        edge: { listen: ["127.0.0.1:0"], identity: { tokens: isApart ? tokens : tokens.slice(0, 1) } },
        node: { stopWithin: "100ms" },
        worker: { slots: 3, sandbox: kind, processesMax: 60, memoryMax: "300MiB", printedMax: "64KiB" },
      });
      mill = new Bench(lab.client(secrets.mill));
      bakery = new Bench(lab.client(secrets.bakery));
    });
    after(async () => await lab[Symbol.asyncDispose]());

    /** Runs it, and then something harmless, which must succeed. */
    async function suffer(action: Digest, bench = mill): Promise<ExecuteResponse> {
      const { response } = await bench.execute(action);
      await alive();
      return response;
    }
    async function alive(): Promise<void> {
      const { response } = await mill.execute(await mill.sh(salted("echo alive")));
      equal(Buffer.from(response.result?.stdoutRaw ?? "").toString(), "alive\n");
    }
    const printed = async (bench: Bench, { result }: ExecuteResponse): Promise<string> => {
      if (result && result.stdoutRaw.length > 0) return Buffer.from(result.stdoutRaw).toString();
      const { responses } = await bench.grpc.unary(ContentAddressableStorage.methods.batchReadBlobs, {
        instanceName: "",
        digests: result?.stdoutDigest ? [result.stdoutDigest] : [],
        acceptableCompressors: [],
        digestFunction: 0,
      });
      return Buffer.from(responses[0]?.data ?? "").toString();
    };

    test("that forks without end gets a limited number of processes, and none after its time", async () => {
      const marker = `7${process.pid}`;
      const line = salted(`f() { sleep ${marker} & f | f & }; f; sleep ${marker}`);
      const bomb = await mill.action(
        { arguments: ["/bin/bash", "-c", line], environmentVariables: [{ name: "PATH", value: "/usr/bin:/bin" }] },
        {},
        { timeout: seconds(2) },
      );
      let most = 0;
      const watch = setInterval(() => {
        most = Math.max(most, commandLines().filter((words) => words.includes(marker)).length);
      }, 50);
      const response = await suffer(bomb).finally(() => clearInterval(watch));
      equal(response.status?.code, grpcCode.deadlineExceeded);
      // Without groups a limit counts all processes of its user: those of six lanes, and the node's own.
      const mostMax = keptOf(response).groups === "none" ? 6 * 60 + 60 : 60;
      ok(most > 5 && most <= mostMax, `${most} at once`);
      equal(commandLines().filter((words) => words.includes(marker)).length, 0, "nothing is left");
    });

    test("that takes more memory than it may is killed, retried once, and reported", async () => {
      const hog = salted("head -c 900000000 /dev/zero | tail -c 800000000 | wc -c");
      const response = await suffer(await mill.sh(hog, {}, {}, memory("50MiB")));
      const { message, result, status } = response;
      if (keptOf(response).groups === "none") return match(await stderr(mill, response), /memory/);
      match(message + (status?.message ?? ""), /memory/);
      ok(result?.exitCode !== 0 || status?.code === grpcCode.resourceExhausted, JSON.stringify(response));
    });

    test("that takes all memory for actions leaves the machine its own", async (t) => {
      const probe = await suffer(await mill.sh(salted("true")));
      if (keptOf(probe).groups === "none") return t.skip("needs cgroups: what nobody limits, nobody counts");
      const response = await suffer(await mill.sh(salted("head -c 900000000 /dev/zero | tail -c 800000000 | wc -c")));
      match(response.message + (response.status?.message ?? ""), /memory/);
    });

    if (isBox)
      test("that fills a memory file system is stopped", async () => {
        const sizes = await suffer(
          await mill.sh(salted("stat -f -c '%b %S' /tmp /dev/shm /var/tmp /run; touch /dev/x")),
        );
        const bytes = (await printed(mill, sizes))
          .trim()
          .split("\n")
          .map((line) => line.split(" ").map(Number));
        const all = bytes.reduce((sum, [blocks = 0, size = 0]) => sum + blocks * size, 0);
        equal(sizes.result?.exitCode, 1, "the folder of devices is closed");
        if (keptOf(sizes).groups === "none") return ok(all * 3 < totalmem(), `${all} bytes in each of three lanes`);
        const fill = await mill.sh(salted("for d in /tmp /dev/shm; do head -c 1000000000 /dev/zero > $d/x; done"));
        const { message, result, status } = await suffer(fill);
        ok(result?.exitCode !== 0 || status?.code !== 0, message);
      });

    test("that starts a daemon leaves none behind", async () => {
      const marker = `8${process.pid}`;
      const line = `setsid sh -c '(trap "" HUP TERM; sleep ${marker}) &' ; nohup sleep ${marker} & echo started`;
      const { result } = await suffer(await mill.sh(salted(line)));
      equal(result?.exitCode, 0);
      equal(commandLines().filter((words) => words.includes(marker)).length, 0);
    });

    test("that writes to its inputs does not change those of other actions", async () => {
      const content = `pure ${randomUUID()}`;
      const inputs = { "in/a": content, "in/b*": content };
      const evil =
        "for f in in/a in/b; do chmod 777 $f; echo evil >> $f; done; exec 2>&1; " +
        "for f in in/a in/b; do dd if=/dev/zero of=$f bs=1 count=4 conv=notrunc; ln $f l; echo x >> l; rm l; " +
        "mv $f x; cp x $f; chmod 777 $f; echo evil > $f; done; cat in/a";
      const first = await suffer(await mill.sh(salted(evil), {}, inputs));
      match(await printed(mill, first), /evil\n$/, "its own copy it may replace");
      const { response } = await mill.execute(await mill.sh(salted("cat in/a in/b"), {}, inputs));
      equal(await printed(mill, response), content + content);
    });

    test("that tries to escape its root by output names or links reaches nothing", async () => {
      for (const path of ["../x", "/etc/passwd", "a/../../x"])
        await rejects(
          mill.execute(await mill.sh(salted("true"), { outputPaths: [path] })),
          (error) => error instanceof GrpcError && error.code === grpcCode.invalidArgument,
          path,
        );
      const above = await suffer(await mill.sh(salted("true"), { outputPaths: ["etc/passwd"] }, { "etc@": "/etc" }));
      equal(above.status?.code, grpcCode.failedPrecondition);
      const line =
        "rmdir d/e d; ln -s /etc d; ln -s /etc/passwd f; mkdir t; ln -s /etc t/etc; " +
        "ln -s ../../../../../etc/passwd t/p; " +
        "ln /etc/passwd h || :; mkdir g; ln -s / g/r";
      const outputPaths = ["d/e/passwd", "d/passwd", "f", "t", "h", "g/r/etc/passwd"];
      const { result, status } = await suffer(await mill.sh(salted(line), { outputPaths }));
      equal(status?.code ?? 0, 0, status?.message ?? "");
      deepEqual(
        result?.outputFiles.map(({ path }) => path).filter((path) => path !== "h"),
        [],
      );
      deepEqual(
        result?.outputSymlinks.map(({ path, target }) => [path, target]),
        [["f", "/etc/passwd"]],
        "told as a link",
      );
    });

    if (isApart)
      test("of another tenant can read neither workspace, nor memory, nor environment", async () => {
        const secret = randomUUID();
        const held = await mill.sh(salted("pwd > where; sleep 30"), {
          outputPaths: ["where"],
          environmentVariables: [
            { name: "SECRET", value: secret },
            { name: "PATH", value: "/usr/bin:/bin" },
          ],
        });
        const victim = mill.execute(held, {}, { signal: AbortSignal.timeout(60_000) }).catch(() => undefined);
        await until("the victim runs", () => commandLines().some((words) => /sleep 30 #/.test(words)));
        const where = (): readonly string[] => globSync(join(lab.root, "actions", "attempts", "*", "root", "where"));
        await until("the victim has written", () => where().some((path) => readQuietly(path) !== ""));
        const line =
          `cat ${where().join(" ")} /proc/[0-9]*/cwd/where /proc/[0-9]*/root${boxRoot}/where; ` +
          `ls ${lab.root}/actions/attempts; ` +
          `cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep ${secret.slice(0, 20)}`;
        const response = await suffer(await bakery.sh(salted(line)), bakery);
        deepEqual([await printed(bakery, response), response.status?.code ?? 0], ["", 0]);
        ok(where().length > 0, "the victim was there all the time");
        void victim;
      });

    test("has no network, or its result says that it had", async () => {
      const server = createServer((socket) => socket.end("hello\n"));
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const { port } = server.address() as { port: number };
      try {
        const line = salted(`exec 3<>/dev/tcp/127.0.0.1/${port} && cat <&3`);
        const environmentVariables = [{ name: "PATH", value: "/usr/bin:/bin" }];
        const response = await suffer(
          await mill.action({ arguments: ["/bin/bash", "-c", line], environmentVariables }),
        );
        equal(await printed(mill, response), isBox ? "" : "hello\n");
        equal(keptOf(response).network, isBox ? "own" : "shared");
        equal(keptOf(response).users, isRoot ? "own" : "shared");
      } finally {
        server.close();
      }
    });

    test(`that prints ${isBox ? "a gigabyte" : "a lot"} keeps its beginning and end, the rest is counted`, async () => {
      const bytes = isBox ? 1e9 : 1e8;
      const line = `echo first; yes xxxxxxx | head -c ${bytes}; echo last`;
      const response = await suffer(await mill.sh(salted(line)));
      equal(response.result?.exitCode, 0);
      const text = await printed(mill, response);
      match(text, /^first\nx/);
      match(text, /\n\.\.\. \d+ bytes left out \.\.\.\n/);
      match(text, /x\nlast\n$/);
      ok(text.length < 70_000 && (keptOf(response).printedBytesLeftOut ?? 0) > bytes * 0.9);
    });

    if (isApart)
      test("that kills whatever it can reach reaches only itself", async () => {
        const before = lab.node;
        const line = salted("kill -9 -1; kill -9 $PPID; for p in /proc/[0-9]*; do kill -9 ${p#/proc/}; done; echo on");
        await mill.execute(await mill.sh(line, {}, {}, { timeout: seconds(20) }));
        await alive();
        equal(lab.node, before);
      });

    const stderr = async (bench: Bench, { result }: ExecuteResponse): Promise<string> => {
      const { responses } = await bench.grpc.unary(ContentAddressableStorage.methods.batchReadBlobs, {
        instanceName: "",
        digests: result?.stderrDigest ? [result.stderrDigest] : [],
        acceptableCompressors: [],
        digestFunction: 0,
      });
      return Buffer.from(responses[0]?.data ?? "").toString();
    };
  });

for (const { kind, skip } of kinds)
  test(
    `a hostile action that fills the disk is killed and reported, and another one goes on (${kind})`,
    { skip },
    async () => {
      // The present free space: whatever is written is too much.
      const diskFreeMin = `${Math.ceil(freeBytes(tmpdir()) / 1024 ** 2) + 10_000}MiB`;
      await using lab = await Lab.open({ worker: { slots: 2, sandbox: kind, diskFreeMin } });
      const bench = new Bench(lab.client());
      const neighbour = bench.execute(await bench.sh(salted("echo small > f; sleep 3; cat f")));
      const { response } = await bench.execute(await bench.sh(salted("head -c 200000000 /dev/zero > big; sleep 100")));
      equal(response.status?.code, grpcCode.resourceExhausted);
      match(response.status?.message ?? "", /disk/);
      equal(Buffer.from((await neighbour).response.result?.stdoutRaw ?? "").toString(), "small\n");
    },
  );
