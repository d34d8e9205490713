/** The door's section of the configuration, as its parts take it. */
import type { AssetSettings } from "#doors/build/assets/asset-download.ts";
import type { BuildConfig } from "#doors/build/config.ts";
import { executionSettingsDefault, type ExecutionSettings } from "#doors/build/execute/execution-settings.ts";
import { buildSettingsDefault, type BuildSettings } from "#doors/build/settings.ts";

export const buildSettings = ({ instances, blobMax }: BuildConfig): BuildSettings => ({
  ...buildSettingsDefault,
  instances,
  blobBytesMax: blobMax,
});

export const assetSettings = (
  { fetchFrom }: BuildConfig,
  isThisMachineOnly: boolean,
): Pick<AssetSettings, "allow"> => ({ allow: fetchFrom ?? (isThisMachineOnly ? anywhere : []) });

/** Callers on this machine reach all that the node does by themselves: there is nothing to keep from them. */
const anywhere = ["https://", "http://"];

/** Labels that workers here offer are understood as platform properties of the same name. */
export function executionSettings(config: BuildConfig, labels: readonly string[]): ExecutionSettings {
  const offered = labels.map((label) => label.slice(0, label.indexOf("=")));
  return {
    ...executionSettingsDefault,
    timeoutMsDefault: Math.min(config.actionTimeout, config.actionTimeoutMax),
    timeoutMsMax: config.actionTimeoutMax,
    queueMs: config.queueWithin,
    noWorkerMs: config.noWorkerWithin,
    pools: config.pools,
    leaveGraceMs: config.leaveGrace,
    properties: [...new Set([...config.properties, ...offered])],
    ignoredProperties: config.ignoreProperties,
    memoryBytesDefault: config.actionMemory ?? 0,
  };
}
