/** Encodes spans as OTLP over HTTP, in its JSON form. */

export type AttributeValue = string | number | boolean;

export type Span = {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | undefined;
  readonly name: string;
  readonly kind: "internal" | "server" | "client";
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, AttributeValue | undefined>>;
  /** Why it failed; undefined if it did not. */
  readonly error?: string | undefined;
};

const kinds = { internal: 1, server: 2, client: 3 } as const;
const statusError = 2;
const textLengthMax = 1_000;

/** One request for all of them. `resource` describes their source. */
export function exportRequest(spans: readonly Span[], resource: Span["attributes"], version: string): object {
  return {
    resourceSpans: [
      {
        resource: { attributes: attributesOf(resource) },
        scopeSpans: [{ scope: { name: "millrace", version }, spans: spans.map(spanOf) }],
      },
    ],
  };
}

const spanOf = ({ traceId, spanId, parentId, name, kind, startMs, endMs, attributes, error }: Span): object => ({
  traceId,
  spanId,
  ...(parentId !== undefined && { parentSpanId: parentId }),
  name,
  kind: kinds[kind],
  startTimeUnixNano: nanos(startMs),
  endTimeUnixNano: nanos(Math.max(startMs, endMs)),
  attributes: attributesOf(attributes),
  ...(error !== undefined && { status: { code: statusError, message: error.slice(0, textLengthMax) } }),
});

function attributesOf(attributes: Span["attributes"]): readonly object[] {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: any(value) }],
  );
}

/** Integers are written as text: JSON numbers do not have 64 bits. */
function any(value: AttributeValue): object {
  if (typeof value === "boolean") return { boolValue: value };
  if (typeof value === "string") return { stringValue: value.slice(0, textLengthMax) };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}

/** A number of milliseconds cannot represent nanoseconds exactly. */
const nanos = (ms: number): string => {
  const whole = Math.floor(ms);
  return String(BigInt(whole) * 1_000_000n + BigInt(Math.round((ms - whole) * 1e6)));
};
