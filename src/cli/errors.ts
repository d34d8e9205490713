/** An error as a person reads it: what was being done, what is wrong, and the next thing to type. */
import { isFault, type Fault } from "#base/fault.ts";
import { isRejected } from "#shard/rejected.ts";

export function explain(error: unknown): readonly string[] {
  if (isFault(error)) return [error.message, ...next(remedyOf(error))];
  if (isRejected(error))
    return [error.message, ...next(error.rejection.kind === "job-unknown" ? "millrace job list" : undefined)];
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return [`this is a bug: ${stack}`];
}

/** The same for programs, on the error stream. */
export function explainJson(error: unknown): string {
  const [message = "", hint] = explain(error);
  const code = isFault(error) ? error.code : isRejected(error) ? error.rejection.kind : "internal";
  return JSON.stringify({
    kind: "error",
    code,
    message,
    ...(hint === undefined ? {} : { next: hint.replace(/^next: /, "") }),
  });
}

const next = (command: string | undefined): readonly string[] => (command === undefined ? [] : [`next: ${command}`]);

const files: Readonly<Record<string, string>> = {
  "read job file": "millrace help job submit",
  "read build file": "millrace help build submit",
  "read configuration": "millrace help up",
};

function remedyOf({ code, doing, facts }: Fault): string | undefined {
  if (doing === "find node" && code === "unavailable")
    return facts["address"] === undefined
      ? "start one with: millrace up"
      : "start it with: millrace up, or name another with --node";
  if (code === "unavailable" && facts["server"] !== undefined)
    return "start it with: millrace up, or name another with --server";
  if (facts["status"] === 401) return "say who asks: MILLRACE_TOKEN=... millrace ...";
  if (doing === "lock data folder" && code === "exhausted")
    return "millrace nodes, or start another with: millrace up --data FOLDER";
  if (doing === "listen" && code === "exhausted" && facts["port"] !== undefined)
    return "choose another host:port in edge.listen (port 0: any that is free), or end what is there";
  if (doing === "read job id" || doing === "find owner") return "millrace job list";
  if (code === "not-found" && doing in files) return files[doing];
  if (code === "unavailable" || code === "unknown-outcome") return "millrace shards";
  return undefined;
}
