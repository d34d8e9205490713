/** Which trace a span belongs to, in the words of W3C Trace Context: `00-<trace>-<span>-<flags>`. */
import { randomBytes } from "node:crypto";

export type TraceContext = {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits: whoever this comes from. */
  readonly spanId: string;
  readonly sampled: boolean;
};

const shape = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** Undefined for what cannot be read: the trace begins anew then. */
export function parseTraceparent(text: string | undefined): TraceContext | undefined {
  const match = text === undefined || text.length > 200 ? null : shape.exec(text.trim());
  if (!match) return undefined;
  const [, version = "", traceId = "", spanId = "", flags = "", more] = match;
  // A later version may say more behind what this one knows; this one says nothing more.
  if (version === "ff" || (version === "00" && more !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export const formatTraceparent = ({ traceId, spanId, sampled }: TraceContext): string =>
  `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`;

export const newTraceId = (): string => randomBytes(16).toString("hex");
export const newSpanId = (): string => randomBytes(8).toString("hex");
