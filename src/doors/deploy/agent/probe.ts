/** Asks whether a service answers. Everything but a clear yes is a no. */
import { execFile } from "node:child_process";
import { get } from "node:http";
import { connect } from "node:net";
import type { ProbeSpec } from "#doors/deploy/manifest/run-spec.ts";

const answerMsMax = 5_000;

export type ProbeAnswer = { readonly ok: boolean; readonly said: string };

export async function probe(spec: ProbeSpec, cwd: string): Promise<ProbeAnswer> {
  switch (spec.kind) {
    case "http":
      return await probeHttp(spec.port, spec.path);
    case "tcp":
      return await probeTcp(spec.port);
    case "exec":
      return await probeExec(spec.command, cwd);
  }
}

function probeHttp(port: number, path: string): Promise<ProbeAnswer> {
  const { promise, resolve } = Promise.withResolvers<ProbeAnswer>();
  const request = get({ host: "127.0.0.1", port, path, timeout: answerMsMax, agent: false }, (response) => {
    response.resume();
    const { statusCode = 0 } = response;
    resolve({ ok: statusCode >= 200 && statusCode < 300, said: `HTTP ${statusCode}` });
  });
  request.on("timeout", () => request.destroy(new Error(`no answer within ${answerMsMax} ms`)));
  request.on("error", (error) => resolve({ ok: false, said: error.message }));
  return promise;
}

function probeTcp(port: number): Promise<ProbeAnswer> {
  const { promise, resolve } = Promise.withResolvers<ProbeAnswer>();
  const socket = connect({ host: "127.0.0.1", port, timeout: answerMsMax });
  const end = (ok: boolean, said: string): void => {
    socket.destroy();
    resolve({ ok, said });
  };
  socket.on("connect", () => end(true, "connected"));
  socket.on("timeout", () => end(false, `no answer within ${answerMsMax} ms`));
  socket.on("error", (error) => end(false, error.message));
  return promise;
}

function probeExec(command: readonly string[], cwd: string): Promise<ProbeAnswer> {
  const [program = "", ...args] = command;
  const { promise, resolve } = Promise.withResolvers<ProbeAnswer>();
  execFile(program, args, { cwd, timeout: answerMsMax, killSignal: "SIGKILL", maxBuffer: 64 * 1024 }, (error) =>
    resolve(error ? { ok: false, said: `exit code ${error.code ?? "none"}` } : { ok: true, said: "exit code 0" }),
  );
  return promise;
}
