/** An error as a person reads it: what was being done, what is wrong, and the next thing to type. */
import { asSystemFault, systemErrorOf, systemWords } from "#app/node/system-faults.ts";
import { isFault, type Fault } from "#base/fault.ts";
import { isRejected } from "#shard/work/rejected.ts";

/** `command` is the one that failed, such as `up`. */
export function explain(error: unknown, command = "millrace"): readonly string[] {
  const { message, next } = explained(error, command);
  return next === undefined ? [message] : [message, `next: ${next}`];
}

/** The same for programs, on the error stream. */
export function explainJson(error: unknown, command = "millrace"): string {
  return JSON.stringify({ kind: "error", ...explained(error, command) });
}

type Explained = { readonly code: string; readonly message: string; readonly next?: string };

function explained(thrown: unknown, command: string): Explained {
  const error = asSystemFault(thrown, command);
  if (isFault(error)) {
    const next = remedyOf(error, command);
    return { code: error.code, message: withReason(error), ...(next !== undefined && { next }) };
  }
  if (isRejected(error)) {
    const { kind } = error.rejection;
    return { code: kind, message: error.message, ...(kind === "job-unknown" && { next: "millrace job list" }) };
  }
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { code: "internal", message: `this is a bug: ${stack}` };
}

/** Plain words for error names such as EACCES. */
function withReason({ message, facts }: Fault): string {
  const words = facts["why"] === undefined ? systemWords[String(facts["errno"])] : undefined;
  return words ? `${message}: ${words.why}` : message;
}

const files: Readonly<Record<string, string>> = {
  "read job file": "millrace help job submit",
  "read build file": "millrace help build submit",
  "read configuration": "millrace help up",
};

function remedyOf(fault: Fault, command: string): string | undefined {
  const { code, doing, facts } = fault;
  if (doing === "find node" && code === "unavailable" && facts["errno"] === undefined)
    return "start one with: millrace up";
  if (code === "unavailable" && facts["server"] !== undefined)
    return "start it with: millrace up, or name another with --server";
  if (facts["status"] === 401) return "say who asks: MILLRACE_TOKEN=... millrace ...";
  if (facts["status"] === 404 && (command.startsWith("job ") || command === "why")) return "millrace job list";
  if (facts["status"] === 400 && command === "job submit") return "millrace help job submit";
  if ((code === "not-found" || code === "invalid") && doing in files) return files[doing];
  return command === "up" || facts["errno"] !== undefined ? remedyAtStart(fault) : later(fault);
}

const later = ({ code }: Fault): string | undefined =>
  code === "unavailable" || code === "unknown-outcome" ? "millrace shards" : undefined;

/** What a node that does not start needs, and what any command needs of files. */
function remedyAtStart(fault: Fault): string | undefined {
  const { code, doing, facts } = fault;
  if (doing === "lock data folder" && code === "exhausted" && facts["heldBy"] !== undefined)
    return "millrace nodes, or start another with: millrace up --data FOLDER";
  if (doing === "listen for the mesh") return "choose another host:port in mesh.listen, or end what is there";
  if (doing === "listen" && (facts["errno"] === "EACCES" || facts["errno"] === "EPERM"))
    return "choose a port above 1023: only root may listen below";
  if (doing === "listen" && facts["errno"] === undefined)
    return "choose another host:port in edge.listen (port 0: any that is free), or end what is there";
  if (doing === "read address" && facts["bytesMax"] !== undefined)
    return "millrace up --data FOLDER, with a shorter path; or --set node.listen=unix:/run/millrace.sock";
  if (doing === "read the node's name") return `write its name into that file, or remove it: then it gets a new one`;
  if (facts["version"] !== undefined && facts["understood"] !== undefined)
    return "start the newer version of millrace again, or use another folder: millrace up --data FOLDER";
  if (code === "corrupt") return "put back a copy of the folder, or start anew in another: millrace up --data FOLDER";
  if (facts["file"] !== undefined && facts["why"] !== undefined) return undefined; // that says what to do
  const { errno = String(facts["errno"]), path } = systemErrorOf(fault) ?? {};
  const about = facts["folder"] ?? facts["file"] ?? facts["path"] ?? path;
  const next = systemWords[errno]?.next(about === undefined ? undefined : String(about));
  return doing === "lock data folder" && next !== undefined
    ? `millrace up --data FOLDER, with another folder; or ${next}`
    : next;
}
