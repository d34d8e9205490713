/** Which regions a wave reaches. Pure. */
import type { ServiceFile } from "./service-file.ts";

export const waveRegions = ({ targets }: Pick<ServiceFile, "waves" | "targets">, _index: number): readonly string[] =>
  targets.regions;
