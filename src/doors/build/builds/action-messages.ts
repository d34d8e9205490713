/** Pure: an action of a build as messages of the Remote Execution API: the same action for every cache. */
import type { Digest } from "#base/digest.ts";
import {
  Command_OutputDirectoryFormat as Format,
  type Action,
  type Command,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import type { Build, BuildAction, Pair } from "#wire/generated/millrace/build/v1/builds.ts";
import type { ActionOrder } from "#doors/build/plan.ts";
import { byCode } from "#doors/build/execute/plan-platform.ts";
import { wireOf } from "#doors/build/digests.ts";

export type ActionMessages = { readonly command: Command; readonly action: Action };

export function messagesOf(given: BuildAction): ActionMessages {
  const { timeoutMs, platform, doNotCache } = given;
  const command: Command = {
    arguments: given.arguments,
    environmentVariables: byName(given.environment),
    outputFiles: [],
    outputDirectories: [],
    workingDirectory: given.workingDirectory,
    outputPaths: [...new Set(given.outputPaths)].toSorted(byCode),
    outputNodeProperties: [],
    // Other actions take a directory as input, not a tree.
    outputDirectoryFormat: Format.TREE_AND_DIRECTORY,
  };
  const timeout = { seconds: Math.floor(timeoutMs / 1_000), nanos: (timeoutMs % 1_000) * 1e6 };
  const action: Action = {
    doNotCache,
    salt: new Uint8Array(),
    ...(timeoutMs > 0 && { timeout }),
    ...(platform.length > 0 && { platform: { properties: byName(platform) } }),
  };
  return { command, action };
}

export const completed = (action: Action, command: Digest, inputRoot: Digest): Action => ({
  ...action,
  commandDigest: wireOf(command),
  inputRootDigest: wireOf(inputRoot),
});

const byName = (pairs: readonly Pair[]): readonly Pair[] =>
  pairs.toSorted((a, b) => byCode(a.name, b.name) || byCode(a.value, b.value));

type Known = Omit<ActionOrder, "instance" | "metadata">;

/** As if a client had requested it, with the metadata that explains misses. */
export const askedFor = (
  { key }: Pick<BuildAction, "key">,
  { name, instanceName }: Pick<Build, "name" | "instanceName">,
  known: Known,
): ActionOrder => ({
  ...known,
  instance: instanceName,
  metadata: {
    actionId: "",
    toolInvocationId: "",
    correlatedInvocationsId: "",
    actionMnemonic: name,
    targetId: key,
    configurationId: "",
  },
});
