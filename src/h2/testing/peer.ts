/** Shared by the tests of this folder: a server that echoes, and a certificate. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Clock } from "#base/clock.ts";
import { ConstantHeaders } from "#h2/hpack/hpack-encoder.ts";
import { listenH2, type H2Server, type H2ServerOptions } from "#h2/server.ts";
import type { Stream, StreamHandler } from "#h2/connection/stream.ts";

const okHeaders = new ConstantHeaders([
  [":status", "200"],
  ["content-type", "application/octet-stream"],
]);
const trailers = new ConstantHeaders([["x-ended", "well"]]);

/** Sends every byte back, reading no faster than the client does; trailers at the end. */
class Echo implements StreamHandler {
  #owed = 0;
  #ended = false;

  onData(stream: Stream, bytes: Buffer, ended: boolean): void {
    const room = bytes.length === 0 || stream.write(Buffer.from(bytes));
    this.#owed += bytes.length;
    this.#ended ||= ended;
    if (room) this.onWritable(stream);
  }

  onTrailers(stream: Stream): void {
    this.#ended = true;
    this.onWritable(stream);
  }

  onWritable(stream: Stream): void {
    if (this.#ended) return stream.sendTrailers(trailers);
    stream.consume(this.#owed);
    this.#owed = 0;
  }

  onReset(): void {}
}

export type EchoServer = H2Server & { readonly resets: number[]; readonly requests: string[] };

/** "/silent" is never answered, "/refuse" is reset, everything else is echoed. */
export async function echoServer(clock: Clock, options: Partial<H2ServerOptions> = {}): Promise<EchoServer> {
  const resets: number[] = [];
  const requests: string[] = [];
  const server = await listenH2({
    host: "127.0.0.1",
    port: 0,
    clock,
    onRequest(stream, headers, ended) {
      requests.push(`${headers.method} ${headers.path}`);
      const silent: StreamHandler = { onData() {}, onReset: (_stream, code) => void resets.push(code) };
      if (headers.path === "/silent") return silent;
      if (headers.path === "/refuse") {
        stream.reset(7);
        return silent;
      }
      stream.sendHeaders(okHeaders);
      if (ended) stream.sendTrailers(trailers);
      return new Echo();
    },
    ...options,
  });
  return { ...server, resets, requests };
}

export type Certificate = { readonly key: Buffer; readonly cert: Buffer };

/** A self-signed certificate for localhost; undefined if openssl is not installed. */
export function selfSigned(): Certificate | undefined {
  const folder = mkdtempSync(join(tmpdir(), "h2-"));
  try {
    const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
    const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
    const made = spawnSync("openssl", ["req", "-x509", ...curve, ...subject, "-keyout", key, "-out", cert]);
    return made.status === 0 ? { key: readFileSync(key), cert: readFileSync(cert) } : undefined;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Why a test that needs the program is skipped, or false. */
export const notInstalled = (program: string): string | false =>
  spawnSync(program, ["--version"]).error !== undefined && `needs ${program}: it is not installed`;

/** Runs a program to its end; returns its whole output. */
export async function runProgram(program: string, ...args: readonly string[]): Promise<string> {
  const child = spawn(program, [...args], { stdio: ["ignore", "pipe", "pipe"], timeout: 20_000 });
  const chunks: Buffer[] = [];
  for (const out of [child.stdout, child.stderr]) out.on("data", (chunk: Buffer) => chunks.push(chunk));
  await once(child, "close");
  return Buffer.concat(chunks).toString("latin1");
}

/** Bytes in use after a full garbage collection. */
export function heldBytes(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
