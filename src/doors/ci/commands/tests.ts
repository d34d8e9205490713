import { basename } from "node:path";
import { command, serverFlags } from "#door/command.ts";
import { callEndpoint } from "#http/client.ts";
import { listTestReports, listTests, putTestReport } from "#doors/ci/tests/endpoints.ts";
import { fetchOf, ownerAndName, repositoryHere, usage } from "./node-call.ts";

const sorts = ["flaky", "slow", "failing"] as const;

export const ciTests = command({
  name: "ci tests",
  about: "Show flaky, slow or failing tests of a repository, or what the tests of a run came to.",
  words: "[repository|run]",
  positionalsMax: 1,
  takesRest: false,
  flags: {
    ...serverFlags,
    sort: { type: "string", value: "WHAT", about: `${sorts.join(", ")}; left out: flaky` },
    text: { type: "string", value: "TEXT", about: "only tests with this in their name" },
    limit: { type: "string", value: "N", about: "at most so many (50)" },
  },
  examples: ["millrace ci tests mill/flour", "millrace ci tests mill/flour --sort slow", "millrace ci tests j0-1"],
  async run({ positionals: [named], values }, world) {
    const fetch = await fetchOf(values, world);
    if (named !== undefined && !named.includes("/")) {
      const shown = await callEndpoint(fetch, listTestReports, { params: { run: named } });
      if (values.json) return (world.out(JSON.stringify(shown)), 0);
      world.out(`${shown.passed} passed, ${shown.failed} failed, ${shown.skipped} skipped`);
      for (const { job, name, failures } of shown.items)
        for (const { suite, name: test, message } of failures)
          world.out(`  ${job}, ${name}: ${suite} ${test}${message === undefined ? "" : `: ${message}`}`);
      return 0;
    }
    const sort = sorts.find((one) => one === (values.sort ?? "flaky"));
    if (sort === undefined) return usage(world, "ci tests mill/flour --sort slow");
    const { text, limit = "50" } = values;
    const query = { sort, limit: Number(limit), ...(text !== undefined && { text }) };
    const params = ownerAndName(await repositoryHere(named));
    const { items } = await callEndpoint(fetch, listTests, { params, query });
    if (values.json) for (const item of items) world.out(JSON.stringify(item));
    else if (items.length === 0) world.out(`no ${sort} tests are known; jobs send reports with millrace ci report`);
    else {
      const { tableLines } = await import("#door/table.ts");
      const letters = { passed: ".", failed: "F", skipped: "s" } as const;
      const rows = items.map((one) => [
        one.job,
        `${one.suite} ${one.name}`,
        one.flaky,
        `${one.failures} of ${one.runs}`,
        `${one.msMedian} ms`,
        one.last.map(({ outcome }) => letters[outcome]).join(""),
      ]);
      for (const line of tableLines(["JOB", "TEST", "FLAKY", "FAILED", "MEDIAN", "LAST"], rows)) world.out(line);
    }
    return 0;
  },
});

export const ciReport = command({
  name: "ci report",
  about: "Send JUnit reports of the job that this runs in: its tests are shown, timed, and watched for flakiness.",
  words: "-- <file>...",
  positionalsMax: 0,
  takesRest: true,
  flags: serverFlags,
  examples: ["millrace ci report -- build/junit.xml", "millrace ci report -- build/test-results/*.xml"],
  async run({ rest = [], values }, world) {
    if (rest.length === 0) return usage(world, "ci report -- build/junit.xml");
    const { openAsBlob } = await import("node:fs");
    const { Fault } = await import("#base/fault.ts");
    const fetch = await fetchOf(values, world);
    let failed = 0;
    for (const [at, file] of rest.entries()) {
      const bytes = await openAsBlob(file).catch((cause: unknown) => {
        throw new Fault("invalid", "send a test report", { file, why: "it cannot be read" }, cause);
      });
      // Reports of several folders may have the same name.
      const isTwice = rest.slice(0, at).some((other) => basename(other) === basename(file));
      const name = isTwice ? `${at}-${basename(file)}` : basename(file);
      const sent = await callEndpoint(fetch, putTestReport, { params: { name }, body: bytes.stream() });
      failed += sent.failed;
      if (values.json) world.out(JSON.stringify(sent));
      else world.out(`${file}: ${sent.passed} passed, ${sent.failed} failed, ${sent.skipped} skipped`);
    }
    if (failed > 0) world.note(`${failed} tests failed; the step's own end says whether that matters`);
    return 0;
  },
});
