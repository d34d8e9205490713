/** An agent's one way to the control plane: outbound HTTP to a node, verified by what it fetches, not by whom. */
import { createHash } from "node:crypto";
import { parseDigest, type Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { callEndpoint, type Fetch } from "#http/client.ts";
import { askSwarm, attachMachine, listKeys, readBlob, readUnits, reportMachine } from "#doors/deploy/endpoints.ts";
import type { SwarmAnswer, SwarmQuestion } from "#doors/deploy/swarm/agent-swarm.ts";
import { capsFromJson } from "#doors/deploy/swarm/caps.ts";
import { unitFrameBytesMax } from "#doors/deploy/swarm/wire.ts";
import type { Machine } from "#doors/deploy/fleet/desk.ts";
import type { Caps } from "#swarm/uploads.ts";
import type { Signed } from "#doors/deploy/signing/signing.ts";
import type { Trusted } from "#doors/deploy/signing/trust.ts";
import type { ServiceStatus } from "./service-agent.ts";

export type UnitRange = {
  readonly stripe: number;
  readonly from: number;
  readonly to: number;
  readonly priority: number;
};

export type AgentLink = {
  ask(question: SwarmQuestion): Promise<SwarmAnswer>;
  units(
    content: Digest,
    range: UnitRange,
    signal: AbortSignal,
  ): AsyncIterable<{ readonly unit: number; readonly bytes: Buffer }>;
  keys(): Promise<Trusted>;
  /** `trust`: the version of the list of keys that the machine has. */
  goals(trust: number, signal: AbortSignal): AsyncIterable<Signed>;
  manifest(digest: Digest): Promise<Signed>;
  segment(digest: Digest): AsyncIterable<Uint8Array>;
  /** Answers with what the machine may send to others; undefined: the node does not say. */
  report(status: ServiceStatus): Promise<Caps | undefined>;
};

const manifestBytesMax = 64 * 1024 * 1024;
const reportMsMax = 10_000;

export function agentLink(fetch: Fetch, { machine, region, labels }: Omit<Machine, "tenant">): AgentLink {
  const query = { region, labels: labels.join(",") };
  const params = { machine };
  async function* segment(digest: Digest): AsyncGenerator<Uint8Array> {
    const response = await callEndpoint(fetch, readBlob, { params: { digest }, query: { region } });
    for await (const part of response.body ?? []) yield part;
  }
  return {
    async keys() {
      const { version, keys, revoked } = await callEndpoint(fetch, listKeys, {});
      return { version, keys, revoked };
    },
    async *goals(trust, signal) {
      const events = await callEndpoint(fetch, attachMachine, { params, query: { ...query, trust }, signal });
      for await (const { data } of events) yield data;
    },
    async manifest(digest) {
      const { hash, sizeBytes } = parseDigest(digest) ?? { hash: "", sizeBytes: 0 };
      const parts: Uint8Array[] = [];
      let bytes = 0;
      for await (const part of segment(digest)) {
        if ((bytes += part.length) > Math.min(sizeBytes, manifestBytesMax))
          throw new Fault("corrupt", "fetch manifest", { digest, why: "longer than its digest says" });
        parts.push(part);
      }
      const whole = Buffer.concat(parts);
      if (bytes < sizeBytes) throw new Fault("unavailable", "fetch manifest", { digest, why: "the bytes ended early" });
      if (createHash("sha256").update(whole).digest("hex") !== hash)
        throw new Fault("corrupt", "fetch manifest", { digest, why: "its bytes do not have this digest" });
      return JSON.parse(whole.toString("utf8")) as Signed;
    },
    segment,
    async ask(question) {
      const body = { question };
      const answer = await callEndpoint(fetch, askSwarm, { params, body, signal: AbortSignal.timeout(reportMsMax) });
      return { ...answer, caps: capsFromJson(answer.caps) };
    },
    async *units(content, range, signal) {
      const response = await callEndpoint(fetch, readUnits, {
        params: { content },
        query: { ...range, region, machine },
        signal,
      });
      yield* unitsIn(response.body ?? []);
    },
    async report({ service, goalVersion, state, running, why }) {
      const body = { service, goalVersion, state, running, why: why.slice(0, 4_000) };
      const signal = AbortSignal.timeout(reportMsMax);
      try {
        const { caps } = await callEndpoint(fetch, reportMachine, { params, query, body, signal });
        return capsFromJson(caps);
      } catch (error) {
        if (error instanceof SyntaxError) return undefined; // a node of an earlier version answers with nothing
        throw error;
      }
    },
  };
}

/** Each unit has its number and its length before it. */
async function* unitsIn(body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>) {
  let parts: Uint8Array[] = [];
  let length = 0;
  let wants = 8;
  for await (const part of body) {
    parts.push(part);
    length += part.length;
    while (length >= wants) {
      const all = Buffer.concat(parts);
      const size = all.readUInt32BE(4);
      if (size > unitFrameBytesMax) throw new Fault("corrupt", "read units", { bytes: size, why: "too long" });
      wants = 8 + size;
      if (length < wants) {
        parts = [all];
        break;
      }
      yield { unit: all.readUInt32BE(0), bytes: all.subarray(8, wants) };
      parts = [all.subarray(wants)];
      length -= wants;
      wants = 8;
    }
  }
}
