/** Makes a lab from addresses. */
import { GrpcClient } from "#grpc/client.ts";
import { connectH2 } from "#h2/client.ts";
import { Capabilities, ServerCapabilities } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { systemClock as clock } from "#door/system-clock.ts";
import type { Lab } from "./lab.ts";

/**
 * Servers without a limit send the largest int64, which we refuse everywhere. Here it is replaced by the largest number
 * that we accept, in as many bytes, so that nothing moves.
 */
const largest = Buffer.from("ffffffffffffffff7f", "hex");
const largestTaken = Buffer.from("ffffffffffffff8f00", "hex");

const { getCapabilities: asGenerated } = Capabilities.methods;
const getCapabilities: typeof asGenerated = {
  ...asGenerated,
  response: {
    ...ServerCapabilities,
    read(from, end, before) {
      for (let at = from.bytes.indexOf(largest); at !== -1; at = from.bytes.indexOf(largest))
        largestTaken.copy(from.bytes, at);
      return ServerCapabilities.read(from, end, before);
    },
  },
};

type Headers = readonly (readonly [string, string])[];

export type LabOptions = {
  readonly target: string;
  readonly instance?: string;
  readonly headers?: Headers;
  readonly readerHeaders?: Headers | undefined;
  readonly narrowHeaders?: Headers | undefined;
  readonly executorHeaders?: Headers | undefined;
  readonly full?: string | undefined;
} & Partial<Pick<Lab, "http" | "files" | "platform" | "littleMemory" | "leaveGraceMs" | "crash" | "forget">>;

export async function openLab(options: LabOptions): Promise<Lab & AsyncDisposable> {
  const { target, instance = "", headers = [], readerHeaders, narrowHeaders, executorHeaders, full, ...rest } = options;
  const clients: GrpcClient[] = [];
  const clientOf = (address: string, metadata: Headers): GrpcClient => {
    const { host, port } = addressOf(address);
    const connect = () => connectH2({ host, port, clock });
    const client = new GrpcClient({ clock, connect, authority: address, metadata, userAgent: "conformance" });
    clients.push(client);
    return client;
  };
  const client = clientOf(target, headers);
  const capabilities = await client.unary(getCapabilities, { instanceName: instance }, { deadlineMs: 10_000 });
  return {
    address: addressOf(target),
    client,
    reader: readerHeaders && clientOf(target, readerHeaders),
    full: full === undefined ? undefined : clientOf(full, headers),
    narrow: narrowHeaders && clientOf(target, narrowHeaders),
    executor: executorHeaders && clientOf(target, executorHeaders),
    platform: [],
    ...rest,
    instance,
    capabilities,
    headers,
    [Symbol.asyncDispose]: () => {
      for (const one of clients) one.close();
      return Promise.resolve();
    },
  };
}

export function addressOf(address: string): { readonly host: string; readonly port: number } {
  const match = /^(?:grpc:\/\/)?\[?([^\]]+?)\]?:(\d+)$/.exec(address);
  if (!match) throw new Error(`write host:port, not ${address}`);
  return { host: match[1] ?? "", port: Number(match[2]) };
}
