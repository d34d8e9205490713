/** What resources a command used, and what it ran in: part of its result, as readable text. */
import { detail } from "#grpc/status.ts";
import type { Any } from "#wire/generated/google/protobuf/any.ts";
import { StringValue } from "#wire/generated/google/protobuf/wrappers.ts";
import type { Ran } from "#worker/sandbox/command.ts";
import type { SandboxAbout } from "#worker/sandbox/sandbox.ts";
import type { ToolNote } from "./tool.ts";

export function usageOf(
  { usage, ranMs, stdout, stderr, sandbox }: Ran,
  { users, network, groups }: SandboxAbout,
  tool?: ToolNote,
): Any {
  const { cpuMs, memoryPeakBytes, readBytes, writtenBytes } = usage;
  const leftOutBytes = stdout.leftOutBytes + stderr.leftOutBytes;
  const facts = {
    sandbox,
    users,
    network,
    groups,
    ranMs: Math.round(ranMs),
    cpuMs: Math.round(cpuMs),
    memoryPeakBytes,
    readBytes,
    writtenBytes,
    ...(leftOutBytes > 0 && { printedBytesLeftOut: leftOutBytes }),
    // A persistent tool answered, with the number of its request; or why none did.
    ...(tool && { tool }),
  };
  return detail(StringValue, { value: JSON.stringify(facts) });
}
