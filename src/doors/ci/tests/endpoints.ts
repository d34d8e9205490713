/** Test reports: what jobs send, what runs and repositories know of their tests. */
import { z } from "zod";
import { endpoint, json } from "#http/endpoint.ts";
import { RunId } from "#doors/ci/run-fields.ts";
import { reportBytesMax } from "./junit.ts";

const Name = z
  .string()
  .min(1)
  .max(200)
  .regex(/^[^\p{C}\\/]+$/u, "a name has no slash, no backslash and no control characters");

const repositoryParams = z.object({ owner: z.string().min(1).max(100), name: z.string().min(1).max(100) });
const counts = { passed: z.int(), failed: z.int(), skipped: z.int(), ms: z.number() };
const Report = z.object({
  run: RunId,
  job: z.string().describe("The job's name, with its part of the matrix."),
  name: z.string(),
  at: z.string(),
  ...counts,
  failures: z
    .array(z.object({ suite: z.string(), name: z.string(), message: z.string().optional() }))
    .describe("The first of them."),
});

export const putTestReport = endpoint({
  method: "PUT",
  path: "/v1/task/test-reports/{name}",
  action: "task.report",
  about: "Takes a JUnit report of the caller's job. The caller is a task, which calls with $MILLRACE_TOKEN_FILE.",
  params: z.object({ name: Name }),
  body: { kind: "bytes", bytesMax: reportBytesMax },
  answer: json(Report),
});

export const listTestReports = endpoint({
  method: "GET",
  path: "/v1/runs/{run}/tests",
  action: "ci.read",
  about: "Lists the test reports of a run, with what failed.",
  params: z.object({ run: RunId }),
  answer: json(z.object({ items: z.array(Report), ...counts })),
});

export const listTests = endpoint({
  method: "GET",
  path: "/v1/repositories/{owner}/{name}/tests",
  action: "ci.read",
  about: "Lists tests of a repository: flaky ones (passed and failed for the same commit), slow ones, failing ones.",
  params: repositoryParams,
  query: z.object({
    sort: z.enum(["flaky", "slow", "failing"]).default("flaky"),
    text: z.string().max(200).optional().describe("Only tests with this in their name, in any case."),
    limit: z.coerce.number().int().min(1).max(500).default(50),
  }),
  answer: json(
    z.object({
      items: z.array(
        z.object({
          job: z.string(),
          suite: z.string(),
          name: z.string(),
          file: z.string().optional(),
          runs: z.int().describe("How many of its last runs are known."),
          failures: z.int(),
          flaky: z.int().describe("For how many commits it both passed and failed."),
          flakyAt: z.string().optional(),
          flakySha: z.string().optional(),
          msMedian: z.number(),
          msLast: z.number(),
          last: z.array(
            z.object({
              outcome: z.enum(["passed", "failed", "skipped"]),
              sha: z.string(),
              run: z.string(),
              at: z.string(),
            }),
          ),
        }),
      ),
    }),
  ),
});

export const testEndpoints = [putTestReport, listTestReports, listTests] as const;
