/** Pure: an invalid build is refused before anything of it is stored, with what is wrong and where. */
import { parseDigest } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import type { Build, BuildAction, Input, OutputOf } from "#wire/generated/millrace/build/v1/builds.ts";
import { checkWorkingDirectory, resolveOutput } from "#worker/stage/paths.ts";
import { shown } from "#doors/build/digests.ts";
import { invalid } from "#doors/build/refusals.ts";
import { clashIn } from "./input-tree.ts";
import { buildLimits } from "./limits.ts";

/** Which actions each action needs, by index; each once. */
export type Needs = readonly (readonly number[])[];

export function checkBuild({ name, actions, deadlineMs }: Build): Needs {
  const { actionsMax, nameLengthMax, deadlineMsMax } = buildLimits;
  if (name.length > nameLengthMax) throw invalid(`a build's name has at most ${nameLengthMax} characters`);
  if (/\p{Cc}/u.test(name)) throw invalid("a build's name has no control characters");
  if (actions.length === 0) throw invalid("the build has no actions");
  if (actions.length > actionsMax)
    throw invalid(`the build has ${actions.length} actions, and at most ${actionsMax} are taken`);
  if (deadlineMs < 0 || deadlineMs > deadlineMsMax) throw invalid(`deadline_ms is 0 to ${deadlineMsMax}`);
  const places = new Map<string, number>();
  for (const [place, { key }] of actions.entries()) {
    checkKey(key);
    if (places.has(key)) throw invalid(`two actions are called ${shown(key)}`);
    places.set(key, place);
  }
  checkSizes(actions);
  for (const action of actions) checkAction(action);
  return actions.map((action) => needsOf(action, places, actions));
}

function checkKey(key: string): void {
  const { keyLengthMax } = buildLimits;
  if (key === "" || key.length > keyLengthMax || /\p{Cc}/u.test(key))
    throw invalid(
      `an action's key has 1 to ${keyLengthMax} characters, none of them control characters: ${shown(key)}`,
    );
}

function checkSizes(actions: readonly BuildAction[]): void {
  const { inputsMax, contentsBytesMax } = buildLimits;
  const inputs = actions.reduce((sum, action) => sum + action.inputs.length, 0);
  if (inputs > inputsMax)
    throw invalid(`the actions have ${inputs} inputs together, at most ${inputsMax} are taken: give folders as trees`);
  let bytes = 0;
  for (const action of actions)
    for (const { source } of action.inputs) if (source?.kind === "contents") bytes += source.value.length;
  if (bytes > contentsBytesMax)
    throw invalid(`${bytes} bytes come with the build, at most ${contentsBytesMax} are taken: upload them as blobs`);
}

/** The command itself is checked when it is planned, as for every other action. */
function checkAction(action: BuildAction): void {
  const about = `action ${shown(action.key)}`;
  within(about, () => {
    checkWorkingDirectory(action.workingDirectory);
    for (const path of action.outputPaths) resolveOutput(action.workingDirectory, path);
  });
  if (action.timeoutMs < 0) throw invalid(`${about}: timeout_ms is negative`);
  for (const input of action.inputs) checkInput(input, action, about);
  const clash = clashIn(action.inputs.map(({ path }) => ({ path, leaf: true })));
  if (clash !== undefined)
    throw invalid(`${about}: at ${shown(clash)} there would be two inputs, or one within another that is given whole`);
}

function checkInput({ path, source, isExecutable }: Input, { inputs }: BuildAction, about: string): void {
  const where = `${about}, input ${shown(path)}`;
  if (!source) throw invalid(`${where}: it is not said what it is`);
  const isWhole = path === "" && source.kind === "tree" && inputs.length === 1;
  if (path === "" && !isWhole) throw invalid(`${where}: only a tree by itself can be all that there is`);
  within(where, () => checkWorkingDirectory(path));
  if (isExecutable && source.kind !== "blob" && source.kind !== "contents")
    throw invalid(`${where}: only a file can be said to be executable`);
  if (source.kind === "blob" || source.kind === "tree") {
    const digest = parseDigest(source.value);
    if (digest?.fn !== "sha256") throw invalid(`${where}: ${shown(source.value)} is no digest, which is HASH/SIZE`);
  }
  if (source.kind === "link" && (source.value === "" || source.value.includes("\0")))
    throw invalid(`${where}: a link leads somewhere`);
}

function needsOf(
  { key, inputs, after }: BuildAction,
  places: ReadonlyMap<string, number>,
  actions: readonly BuildAction[],
): readonly number[] {
  const needs = new Set<number>();
  const add = (other: string): BuildAction => {
    const place = places.get(other);
    const action = place === undefined ? undefined : actions[place];
    if (place === undefined || !action)
      throw invalid(`action ${shown(key)} needs ${shown(other)}, and there is no such action`);
    needs.add(place);
    return action;
  };
  for (const { source } of inputs)
    if (source?.kind === "output") checkDeclared(key, source.value, add(source.value.action));
  for (const other of after) add(other);
  return [...needs];
}

function checkDeclared(key: string, { path }: OutputOf, maker: BuildAction): void {
  if (maker.outputPaths.some((declared) => path === declared || isBelow(path, declared))) return;
  const known = maker.outputPaths.slice(0, 10).map(shown).join(", ") || "none";
  throw invalid(
    `action ${shown(key)} takes ${shown(path)} from ${shown(maker.key)}, whose outputs are others: ${known}`,
  );
}

export const isBelow = (path: string, folder: string): boolean =>
  path.startsWith(`${folder}/`) &&
  !path
    .slice(folder.length + 1)
    .split("/")
    .some((part) => part === "" || part === ".." || part === ".");

function within(where: string, check: () => void): void {
  try {
    check();
  } catch (error) {
    throw isFault(error, "invalid") ? invalid(`${where}: ${error.message}`) : error;
  }
}
