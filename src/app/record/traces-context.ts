/** The trace of a span, in the form of W3C Trace Context: `00-<trace>-<span>-<flags>`. */
import { randomBytes } from "node:crypto";

export type TraceContext = {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits: the caller's span. */
  readonly spanId: string;
  readonly sampled: boolean;
};

const shape = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** Undefined if it cannot be parsed: then a new trace begins. */
export function parseTraceparent(text: string | undefined): TraceContext | undefined {
  const match = text === undefined || text.length > 200 ? null : shape.exec(text.trim());
  if (!match) return undefined;
  const [, version = "", traceId = "", spanId = "", flags = "", more] = match;
  // A later version may append more fields; this one has none.
  if (version === "ff" || (version === "00" && more !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export const formatTraceparent = ({ traceId, spanId, sampled }: TraceContext): string =>
  `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`;

export const newTraceId = (): string => randomBytes(16).toString("hex");
export const newSpanId = (): string => randomBytes(8).toString("hex");
