import { equal } from "node:assert/strict";
import { describe, test } from "node:test";
import type { PlanInputs } from "#kernel/read/query.ts";
import { planWave, type Release } from "./plan.ts";
import { ServiceFile } from "./service/service-file.ts";

const fileOf = (wave: object) =>
  ServiceFile.safeParse({
    service: "web",
    run: { exec: ["web"] },
    targets: { regions: ["eu"] },
    waves: [{ share: "10%" }, { share: "100%", ...wave }],
  });

type Said = readonly [name: string, by: string];

function decided(wave: object, said: readonly Said[]): string {
  const service = fileOf(wave).data;
  if (!service) throw new Error("the service file is wrong");
  const release: Release = { service, sha: "4f2c91a", repository: "/r" };
  const signals = said.map(([name, payload], i) => ({ id: String(i), name, payload }));
  const payload = JSON.stringify({ manifest: "m", evidence: "e", why: "" });
  const result = { payload, digests: [] };
  const results = [{ stage: 1, key: "wave-1", generation: 1, phase: "SUCCEEDED", result }] as const;
  const rest = { generation: 1, needs: [], next: undefined };
  const inputs: PlanInputs = { spec: JSON.stringify(release), stage: "wave-2", signals, results, ...rest };
  return planWave(inputs).kind;
}

const two = { approve: 2, approvers: ["ada", "bob", "cyd"] };
const cases: readonly [string, object, readonly Said[], string][] = [
  ["without approvals it begins", {}, [], "tasks"],
  ["it waits for one", { approve: 1 }, [], "wait"],
  [
    "one person counts once",
    { approve: 2 },
    [
      ["approve", "ada"],
      ["approve", "ada"],
    ],
    "wait",
  ],
  [
    "two people are two",
    { approve: 2 },
    [
      ["approve", "ada"],
      ["approve", "eve"],
    ],
    "tasks",
  ],
  [
    "only named people count",
    two,
    [
      ["approve", "ada"],
      ["approve", "eve"],
    ],
    "wait",
  ],
  [
    "two named people are enough",
    two,
    [
      ["approve", "ada"],
      ["approve", "cyd"],
    ],
    "tasks",
  ],
  [
    "a named person's reject ends it",
    two,
    [
      ["approve", "ada"],
      ["reject", "bob"],
      ["approve", "cyd"],
    ],
    "fail",
  ],
  ["a reject of someone else does not", two, [["reject", "eve"]], "wait"],
];

describe("a wave that must be approved", () => {
  for (const [name, wave, said, kind] of cases) test(name, () => equal(decided(wave, said), kind));

  test("cannot ask for more people than it names", () => {
    equal(fileOf({ approve: 2, approvers: ["ada"] }).success, false);
    equal(fileOf(two).success, true);
  });
});
