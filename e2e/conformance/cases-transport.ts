/** Items 89 to 92: capabilities, the transport, statuses, deadlines. */
import { equal, ok } from "node:assert/strict";
import { connect, type ClientHttp2Session, type IncomingHttpHeaders } from "node:http2";
import { DigestFunction_Value } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { WriteRequest } from "#wire/generated/google/bytestream/bytestream.ts";
import { encode } from "#wire/message.ts";
import { at, type Case } from "./case.ts";
import {
  code,
  codeOf,
  digestOf,
  fresh,
  findMissingBlobs,
  missing,
  nothing,
  readAll,
  readName,
  result,
  write,
  writeName,
  writeWhole,
  freshAction,
  type Lab,
} from "./lab.ts";

/** A connection by an independent HTTP/2 implementation, so that it shows what the server sent. */
async function session({ address }: Lab, use: (session: ClientHttp2Session) => Promise<void>): Promise<void> {
  const opened = connect(`http://${address.host}:${address.port}`);
  try {
    await new Promise<void>((resolve, reject) => opened.once("remoteSettings", () => resolve()).once("error", reject));
    await use(opened);
  } finally {
    opened.destroy();
  }
}

/** The codes after which Bazel retries. */
const retried: readonly number[] = [1, 2, 4, 8, 10, 13, 14];

export const transportCases: readonly Case[] = [
  at(89, "capabilities say what a client has to know", ({ capabilities }) => {
    const cache = capabilities.cacheCapabilities;
    ok(cache, "no cache capabilities");
    ok(cache.digestFunctions.includes(DigestFunction_Value.SHA256), "SHA-256 is not among the functions");
    ok(cache.symlinkAbsolutePathStrategy > 0, "nothing about links to absolute paths");
    ok(cache.actionCacheUpdateCapabilities, "nothing about who may write results");
    const { lowApiVersion: low, highApiVersion: high } = capabilities;
    ok(low?.major === 2 && high?.major === 2 && low.minor <= high.minor, "versions");
    return Promise.resolve();
  }),
  at(90, "a hundred streams at once, long headers, large messages", async (lab) => {
    await session(lab, async (opened) => {
      ok((opened.remoteSettings.maxConcurrentStreams ?? Infinity) >= 100, "streams at once");
    });
    const long = { metadata: [["x-long", "x".repeat(15 * 1024)]] as const };
    equal(await codeOf(readAll(lab, readName(lab, nothing), { options: long })), 0, "headers of 15 KiB");
    const digests = Array.from({ length: 56_000 }, (_, i) => ({
      hash: i.toString(16).padStart(64, "0"),
      sizeBytes: 1,
    }));
    equal((await missing(lab, digests)).length, digests.length, "a request of nearly 4 MiB");
    const calls = Array.from({ length: 100 }, () => missing(lab, [digestOf(fresh())]));
    equal((await Promise.all(calls)).length, 100);
  }),
  at(90, "pings are answered, and the connection goes on", async (lab) => {
    await session(lab, async (opened) => {
      for (let i = 0; i < 2; i += 1)
        await new Promise<void>((resolve, reject) =>
          opened.ping((error) => (error ? reject(error) : resolve())) ? undefined : reject(new Error("no ping")),
        );
      ok(!opened.destroyed && !opened.closed);
    });
  }),
  at(91, "what will never work is not told as something to try again", async (lab) => {
    const bytes = fresh();
    const calls: readonly (readonly [string, () => Promise<unknown>])[] = [
      ["bytes of another digest", () => writeWhole(lab, writeName(lab, digestOf(fresh())), bytes)],
      ["no digest", () => missing(lab, [{ hash: "x", sizeBytes: 1 }])],
      ["a blob that is missing", () => readAll(lab, readName(lab, digestOf(fresh())))],
      ["a result that nobody knows", () => result(lab, freshAction())],
      ["no name", () => readAll(lab, "nonsense")],
      ["an offset beyond the end", () => readAll(lab, readName(lab, nothing), { offset: 5 })],
    ];
    for (const [what, call] of calls) {
      const ended = await codeOf(call());
      ok(ended !== 0, `${what} was taken`);
      ok(!retried.includes(ended), `${what} ended with ${ended}: clients try that again`);
    }
  }),
  at(92, "a call ends by its deadline, although its caller is silent", async (lab) => {
    await session(lab, async (opened) => {
      const stream = opened.request(
        {
          ":method": "POST",
          ":path": write.path,
          "content-type": "application/grpc",
          te: "trailers",
          "grpc-timeout": "300m",
          ...Object.fromEntries(lab.headers),
        },
        { endStream: false },
      );
      const data = fresh(100);
      const name = writeName(lab, { ...digestOf(data), sizeBytes: 1_000_000 });
      const message = encode(WriteRequest, { resourceName: name, writeOffset: 0, finishWrite: false, data });
      const prefix = Buffer.alloc(5);
      prefix.writeUInt32BE(message.length, 1);
      stream.write(Buffer.concat([prefix, message]));
      stream.resume();
      const status = await new Promise<string>((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error("it is still there after 5 s")), 5_000);
        const told = (headers: IncomingHttpHeaders): void => {
          const { "grpc-status": ended } = headers;
          if (typeof ended !== "string") return;
          clearTimeout(timer);
          resolve(ended);
        };
        stream.on("response", told).on("trailers", told);
        stream.on("close", () => {
          clearTimeout(timer);
          resolve("reset");
        });
        stream.on("error", () => {});
      });
      ok([String(code.deadline), "reset", String(code.cancelled)].includes(status), `it ended with ${status}`);
    });
  }),
  at(92, "a call with time enough is answered", async (lab) => {
    const request = { instanceName: lab.instance, blobDigests: [nothing], digestFunction: 0 };
    equal(await codeOf(lab.client.unary(findMissingBlobs, request, { deadlineMs: 20_000 })), 0);
  }),
];
