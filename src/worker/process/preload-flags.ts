/**
 * The flags with which a Node process that this one starts can read TypeScript as well. A package below node_modules
 * needs them (bin/strip-types.js): there Node itself strips no types.
 */
export function preloadFlags(given: readonly string[] = process.execArgv): readonly string[] {
  return given.flatMap((flag, i) => {
    const next = given[i + 1];
    if (flag === "--import" && next !== undefined) return [flag, next];
    return flag.startsWith("--import=") ? [flag] : [];
  });
}
