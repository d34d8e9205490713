/**
 * `node bin/node.js bench/h2/h2.ts [--calls N]`: the HTTP/2 room alone, without gRPC and protobuf: server CPU
 * per call of 219 bytes up and 213 down with both header profiles, CPU per MiB of a download from memory and of an
 * upload that is hashed, and the memory of idle connections. Limits and defences are on, as always.
 * Not measured: latency under load, peers, TLS, files.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { connectH2 } from "#h2/client.ts";
import { PulledStream } from "#h2/connection/pulled-stream.ts";
import { systemClock as realClock } from "#door/system-clock.ts";
import { prepareLoad, type Profile } from "./load.ts";

type Usage = { readonly cpu: NodeJS.CpuUsage; readonly rss: number };

const { values } = parseArgs({ options: { calls: { type: "string", default: "200000" } } });
const calls = Number(values.calls);

const child = fork(join(import.meta.dirname, "server.ts"), {
  execArgv: ["--max-semi-space-size=64"],
});
const [{ port }] = (await once(child, "message")) as [{ port: number }];

async function usage(): Promise<Usage> {
  const answer = once(child, "message");
  child.send("usage?");
  return ((await answer) as [Usage])[0];
}

const cpuUs = (from: Usage, to: Usage): number => to.cpu.user + to.cpu.system - from.cpu.user - from.cpu.system;

async function unary(profile: Profile, connections: number, streams: number, count: number): Promise<void> {
  const run = await prepareLoad({ ports: [port], profile, connections, streams, calls: count });
  const before = await usage();
  const startedMs = performance.now();
  await run();
  const seconds = (performance.now() - startedMs) / 1_000;
  const cpu = cpuUs(before, await usage()) / count;
  const name = `${profile} ${connections}x${streams}`;
  console.log(
    `unary ${name.padEnd(16)} ${Math.round(count / seconds)
      .toString()
      .padStart(7)} calls/s  ${cpu.toFixed(2)} us CPU a call`,
  );
}

async function download(mib: number): Promise<void> {
  const client = await connectH2({ host: "127.0.0.1", port, clock: realClock });
  const done = Promise.withResolvers<void>();
  const before = await usage();
  const startedMs = performance.now();
  client.request(
    [
      [":method", "GET"],
      [":scheme", "http"],
      [":path", `/bulk/${mib}`],
      [":authority", "x"],
    ],
    {
      onData: (stream, bytes) => stream.consume(bytes.length),
      onTrailers: () => done.resolve(),
      onReset: (_stream, code) => done.reject(new Error(`reset ${code}`)),
    },
    true,
  );
  await done.promise;
  const seconds = (performance.now() - startedMs) / 1_000;
  const after = await usage();
  const perMib = cpuUs(before, after) / 1_000 / mib;
  console.log(
    `download ${mib} MiB      ${Math.round(mib / seconds)} MiB/s  ${perMib.toFixed(2)} ms CPU a MiB  server RSS ${Math.round(after.rss / 2 ** 20)} MiB`,
  );
  client.close();
}

async function upload(mib: number): Promise<void> {
  const client = await connectH2({ host: "127.0.0.1", port, clock: realClock });
  const before = await usage();
  const startedMs = performance.now();
  const chunk = Buffer.alloc(64 * 1024, 1);
  const headers = [
    [":method", "POST"],
    [":scheme", "http"],
    [":path", "/upload"],
    [":authority", "x"],
  ] as const;
  const stream = new PulledStream(client.request(headers, { onData() {}, onReset() {} }));
  for (let sent = 1; sent <= mib * 16; sent += 1) await stream.write(chunk, { end: sent === mib * 16 });
  for await (const _ of stream); // the digest
  const seconds = (performance.now() - startedMs) / 1_000;
  const after = await usage();
  const perMib = cpuUs(before, after) / 1_000 / mib;
  console.log(
    `upload ${mib} MiB, SHA-256  ${Math.round(mib / seconds)} MiB/s  ${perMib.toFixed(2)} ms CPU a MiB  server RSS ${Math.round(after.rss / 2 ** 20)} MiB`,
  );
  client.close();
}

async function idle(count: number): Promise<void> {
  const before = await usage();
  const clients = await Promise.all(
    Array.from({ length: count }, () => connectH2({ host: "127.0.0.1", port, clock: realClock })),
  );
  await Promise.all(
    clients.map((client) => {
      const answered = Promise.withResolvers<void>();
      const handler = { onData() {}, onTrailers: () => answered.resolve(), onReset: () => answered.resolve() };
      client
        .request(
          [
            [":method", "POST"],
            [":scheme", "http"],
            [":path", "/x"],
            [":authority", "x"],
          ],
          handler,
        )
        .write(Buffer.alloc(10), { end: true });
      return answered.promise;
    }),
  );
  const after = await usage();
  console.log(`idle ${count} connections  ${((after.rss - before.rss) / 2 ** 20).toFixed(1)} MiB more`);
  for (const client of clients) client.close();
}

await unary("constant", 4, 64, calls); // warms up
for (const profile of ["constant", "changing"] as const)
  for (let round = 0; round < 3; round += 1) await unary(profile, 4, 64, calls);
await unary("constant", 1, 1, Math.min(calls, 20_000));
for (let round = 0; round < 3; round += 1) await download(512);
for (let round = 0; round < 3; round += 1) await upload(512);
await idle(1_000);
child.disconnect();
