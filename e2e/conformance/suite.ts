/** All cases, and how they are run. */
import { assetCases } from "./cases-assets.ts";
import { blobCases } from "./cases-blobs.ts";
import { crashCases } from "./execution/crash.ts";
import { fencingCases } from "./execution/fencing.ts";
import { functionCases } from "./execution/functions.ts";
import { inputCases } from "./execution/inputs.ts";
import { operationCases } from "./execution/operations.ts";
import { outputCases } from "./execution/outputs.ts";
import { processCases } from "./execution/process.ts";
import { refusalCases } from "./execution/refusals.ts";
import { sharingCases } from "./execution/sharing.ts";
import { httpCases } from "./cases-http.ts";
import { nameCases } from "./cases-names.ts";
import { readCases } from "./cases-read.ts";
import { resultCases } from "./cases-results.ts";
import { transportCases } from "./cases-transport.ts";
import { writeCases } from "./cases-write.ts";
import { Skip, type Case } from "./case.ts";
import type { Lab } from "./lab.ts";

export const cacheCases: readonly Case[] = [
  ...nameCases,
  ...writeCases,
  ...readCases,
  ...blobCases,
  ...resultCases,
  ...transportCases,
  ...httpCases,
  ...assetCases,
];

export const executionCases: readonly Case[] = [
  ...operationCases,
  ...refusalCases,
  ...sharingCases,
  ...fencingCases,
  ...functionCases,
  ...inputCases,
  ...outputCases,
  ...processCases,
];

export { crashCases };
export const allCases: readonly Case[] = [...cacheCases, ...executionCases, ...crashCases];

export type Outcome = {
  readonly item: number;
  readonly title: string;
  readonly outcome: "passed" | "failed" | "skipped";
  readonly why?: string;
};

const patienceMs = 60_000;

/** One after the other: cases must not affect each other. */
export async function runCase({ item, title, run }: Case, lab: Lab): Promise<Outcome> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`not done after ${patienceMs / 1_000} s`)), patienceMs);
  try {
    await Promise.race([run(lab), late.promise]);
    return { item, title, outcome: "passed" };
  } catch (error) {
    const why = error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
    return { item, title, outcome: error instanceof Skip ? "skipped" : "failed", why };
  } finally {
    clearTimeout(timer);
  }
}
