/** `grpc-timeout`: up to eight digits and a unit. */

const unitMs = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 0.001, n: 0.000_001 } as const;
/** A day: a longer timeout counts as no deadline, because no call lasts that long. */
const timeoutMsMax = 86_400_000;

/** Undefined if it is invalid; Infinity for one so far away that it needs no timer. */
export function parseTimeoutMs(text: string): number | undefined {
  const { length } = text;
  if (length < 2 || length > 9) return undefined;
  let count = 0;
  for (let i = 0; i < length - 1; i += 1) {
    const digit = text.charCodeAt(i) - 0x30;
    if (digit < 0 || digit > 9) return undefined;
    count = count * 10 + digit;
  }
  const unit = unitMs[text[length - 1] as keyof typeof unitMs];
  if (unit === undefined) return undefined;
  const ms = count * unit;
  return ms > timeoutMsMax ? Number.POSITIVE_INFINITY : ms;
}

/** Rounded up: the server must not give up before the client does. */
export function formatTimeout(ms: number): string {
  const left = Math.max(0, ms);
  if (left < 99_999) return `${Math.ceil(left * 1_000)}u`;
  if (left < 99_999_999) return `${Math.ceil(left)}m`;
  return `${Math.min(99_999_999, Math.ceil(left / 1_000))}S`;
}
