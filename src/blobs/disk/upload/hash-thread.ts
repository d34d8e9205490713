/** The thread behind file-hashing.ts. */
import { closeSync, openSync, readSync } from "node:fs";
import { parentPort } from "node:worker_threads";
import { createHasher, type Hasher } from "#blobs/hashing.ts";
import type { HashAnswer, HashRequest } from "./file-hashing.ts";

type Job = { readonly fd: number; readonly hasher: Hasher; hashedBytes: number };

const buffer = Buffer.allocUnsafeSlow(1024 * 1024);
const jobs = new Map<number, Job | Error>();

function handle(request: HashRequest): HashAnswer | undefined {
  const { id } = request;
  if (request.kind === "begin") {
    jobs.set(id, begin(request));
    return undefined;
  }
  const job = jobs.get(id);
  if (request.kind === "close") {
    if (job && "fd" in job) closeSync(job.fd);
    jobs.delete(id);
    return undefined;
  }
  try {
    if (!job || job instanceof Error) throw job ?? new Error("no such job");
    readUpTo(job, request.sizeBytes);
    if (request.kind === "reach") return { id, hex: "" };
    return request.kind === "finish" ? { id, hex: job.hasher.hex() } : undefined;
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    return request.kind === "advance" ? undefined : { id, error: { message, code } };
  }
}

function begin({ path, fn }: Extract<HashRequest, { kind: "begin" }>): Job | Error {
  try {
    return { fd: openSync(path, "r"), hasher: createHasher(fn), hashedBytes: 0 };
  } catch (error) {
    return error as Error;
  }
}

function readUpTo(job: Job, sizeBytes: number): void {
  while (job.hashedBytes < sizeBytes) {
    const got = readSync(job.fd, buffer, 0, Math.min(buffer.length, sizeBytes - job.hashedBytes), job.hashedBytes);
    if (got === 0) throw Object.assign(new Error("the file is shorter than announced"), { code: "ENODATA" });
    job.hasher.update(buffer.subarray(0, got));
    job.hashedBytes += got;
  }
}

parentPort?.on("message", (request: HashRequest) => {
  const answer = handle(request);
  if (answer) parentPort?.postMessage(answer);
});
