/**
 * Inside the world no code may use the real clock, real randomness or a real timer: the same seed would run
 * differently. While a world runs these globals report the call (a violation) and then throw.
 */
const setImmediateReal = globalThis.setImmediate;

export function forbidRealTime(report: (call: string) => void): {
  readonly setImmediate: typeof globalThis.setImmediate;
  restore(): void;
} {
  const undo: (() => void)[] = [];
  const forbid = (owner: object, ownerName: string, name: string) => {
    const before = Object.getOwnPropertyDescriptor(owner, name);
    const call = `${ownerName}${name}`;
    const value = () => {
      report(`${call} (${new Error().stack?.split("\n")[2]?.trim() ?? "?"})`);
      throw new Error(`${call} inside the world`);
    };
    Object.defineProperty(owner, name, { configurable: true, writable: true, value });
    undo.push(() => {
      if (before) Object.defineProperty(owner, name, before);
      else Reflect.deleteProperty(owner, name);
    });
  };
  forbid(Date, "Date.", "now");
  forbid(Math, "Math.", "random");
  forbid(globalThis, "", "setTimeout");
  forbid(globalThis, "", "setInterval");
  forbid(globalThis, "", "setImmediate");
  forbid(performance, "performance.", "now");
  forbid(AbortSignal, "AbortSignal.", "timeout");
  forbid(crypto, "crypto.", "randomUUID");
  forbid(crypto, "crypto.", "getRandomValues");
  return { setImmediate: setImmediateReal, restore: () => undo.reverse().forEach((run) => run()) };
}
