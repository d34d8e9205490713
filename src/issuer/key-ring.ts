/**
 * Which of the issuer's keys signs, which are still trusted, and when a new one is due. Pure.
 *
 * IS1 A key is trusted until every token that it may have signed has ended: until the longest lifetime of a token after
 *     the next key has begun to sign. Then it goes.
 * IS2 A key is published before it signs, so that programs with a copy of the list have it in time. Only the first key,
 *     and one that replaces keys that may have leaked, signs at once.
 */

export type RingKey = {
  readonly kid: string;
  readonly signsFromMs: number;
};

export type RingRules = {
  /** How long a key signs. */
  readonly signsForMs: number;
  /** How long it is published before. */
  readonly announcedMs: number;
  /** No token is valid for longer. */
  readonly tokenMsMax: number;
  /** How far the clocks of two nodes may be apart. */
  readonly skewMs: number;
};

export type Ring<K extends RingKey> = {
  readonly signing: K | undefined;
  /** To be published, the next one included. */
  readonly trusted: readonly K[];
  readonly spent: readonly K[];
  /** When the next key is to sign; undefined: none is due. */
  readonly dueFromMs: number | undefined;
};

export function ringAt<K extends RingKey>(keys: readonly K[], nowMs: number, rules: RingRules): Ring<K> {
  const { signsForMs, announcedMs, tokenMsMax, skewMs } = rules;
  const sorted = keys.toSorted((a, b) => a.signsFromMs - b.signsFromMs || (a.kid < b.kid ? -1 : 1));
  const isSpent = (_: K, at: number): boolean => {
    const next = sorted[at + 1];
    return next !== undefined && next.signsFromMs + tokenMsMax + skewMs < nowMs;
  };
  const signing = sorted.findLast(({ signsFromMs }) => signsFromMs <= nowMs);
  const newest = sorted.at(-1);
  const endsMs = newest && newest.signsFromMs + signsForMs;
  return {
    signing,
    trusted: sorted.filter((key, at) => !isSpent(key, at)),
    spent: sorted.filter(isSpent),
    dueFromMs:
      signing === undefined || endsMs === undefined
        ? nowMs
        : endsMs - announcedMs <= nowMs
          ? Math.max(endsMs, nowMs + announcedMs)
          : undefined,
  };
}
