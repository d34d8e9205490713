/** Packets that a real serf agent sent, stored in golden/. For tests. */
import { readFileSync } from "node:fs";
import { must } from "#base/assert.ts";

const text = readFileSync(new URL("../wire/golden/serf-0.9.4.txt", import.meta.url), "utf8");

const packets = new Map(
  text
    .split("\n\n")
    .slice(1)
    .map((part) => part.trim().split("\n"))
    .map(([name = "", ...hex]) => [name, Uint8Array.from(Buffer.from(hex.join(""), "hex"))]),
);

export const goldenPacket = (name: string): Uint8Array => must(packets.get(name), `golden packet ${name}`);

export const goldenNames: readonly string[] = [...packets.keys()];

/** The key of the sealed ones. */
export const goldenKey: Uint8Array = new Uint8Array(16).fill("k".charCodeAt(0));
