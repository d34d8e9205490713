/** Whether a worker's version is new enough. Pure. */

const shape = /^(\d{1,6})\.(\d{1,6})\.(\d{1,6})(?:[-+].*)?$/;

/** Undefined if it may stay; otherwise why it is to leave, for people. A version that cannot be read is too old. */
export function versionProblem(version: string, versionMin: string | undefined): string | undefined {
  if (versionMin === undefined) return undefined;
  const [found, least] = [version, versionMin].map((text) => shape.exec(text)?.slice(1).map(Number));
  const compared = found && least ? found.map((part, at) => part - (least[at] ?? 0)).find((order) => order !== 0) : -1;
  return (compared ?? 0) >= 0
    ? undefined
    : `this worker is of version ${version.slice(0, 50)}, and the cluster wants ${versionMin} or newer: update it`;
}
