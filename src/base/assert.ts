/** An internal error of our own code. Assertions stay on in production: a wrong answer costs more than a stop. */
export class AssertionFailed extends Error {
  constructor(message: string) {
    super(message);
    this.name = "AssertionFailed";
  }
}

export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AssertionFailed(message);
}

/** Ends an exhaustive switch: a new member of the union does not compile until it is handled. */
export function unreachable(value: never): never {
  throw new AssertionFailed(`unreachable: ${JSON.stringify(value)}`);
}

/** For a value that the surrounding code has already shown to exist. */
export function must<T>(value: T | undefined | null, what: string): T {
  return value ?? missing(what);
}

/** What `must` throws, for places where building the message on every check would be too expensive. */
export function missing(what: string): never {
  throw new AssertionFailed(`missing: ${what}`);
}
