/** Jobs in containers, with services, and actions that are containers: real podman, an image made here. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { tmpdir } from "node:os";
import { after, describe, test } from "node:test";
import { ContainerDesk } from "#doors/ci/containers/desk.ts";
import { guardContainers } from "#doors/ci/containers/guard.ts";
import { findContainers, ContainerConfig, type LabelledHost } from "#doors/ci/containers/host.ts";
import { runRig, type Rig, type RigEnd } from "#doors/ci/run/testing/job-rig.ts";
import { clearAway } from "#testing/clear-away.ts";
import { image, podmanMissing, TestPodman } from "#testing/podman.ts";

const skip = podmanMissing();
const label = `millrace.test=${process.pid}`;

describe("jobs with containers", { skip, timeout: 240_000 }, () => {
  const podman = skip === false ? new TestPodman() : undefined;
  after(() => podman?.[Symbol.dispose]());
  let count = 0;

  /** As `ci run` does it. */
  async function runIn(rig: Rig): Promise<RigEnd> {
    ok(podman);
    const env = { PATH: process.env["PATH"] };
    const found = await findContainers(ContainerConfig.parse({ engine: [...podman.command] }), env, () => {});
    ok(found, "podman works");
    count += 1;
    const host: LabelledHost = { ...found, labels: [`millrace.run=${process.pid}-${count}`, label] };
    const folder = mkdtempSync(join(tmpdir(), "millrace-containers-"));
    const machine = (at: string) => ({
      containers: new ContainerDesk({
        host,
        labels: host.labels,
        name: `millrace-test-${process.pid}-${count}`,
        mounts: [
          { folder: join(at, "work"), also: ["/github/workspace"] },
          { folder: join(at, "temp") },
          { folder: join(at, "actions"), readOnly: true },
        ],
        workspace: join(at, "work"),
        home: "/tmp",
        folder: join(at, "inside"),
        node: process.execPath,
        env,
      }),
    });
    try {
      const files = { "/actions/readme": "", ...rig.files };
      const guard = guardContainers(host, env);
      try {
        return await runRig({ ...rig, files, folder, machine });
      } finally {
        await guard[Symbol.asyncDispose]();
      }
    } finally {
      clearAway(folder);
    }
  }

  test("CI-65: steps run inside, and paths are the same there and here", async () => {
    const end = await runIn({
      job: `container: { image: "docker://${image}", env: { GRAIN: wheat } }`,
      steps: `
- run: echo "in $(cat /etc/hostname | wc -c) $GRAIN $(readlink /bin/sh)"; test -d /github/workspace
- run: |
    echo words > words.txt
    echo "file=$GITHUB_WORKSPACE/words.txt" >> "$GITHUB_ENV"
    echo "said=hello" >> "$GITHUB_OUTPUT"
    echo "$GITHUB_WORKSPACE/tools" >> "$GITHUB_PATH"
    mkdir tools && printf '#!/bin/sh\\necho a tool\\n' > tools/grind && chmod +x tools/grind
  id: first
- run: cat "$file"; cat /github/workspace/words.txt; grind; echo "\${{ steps.first.outputs.said }}"
- run: test "\${{ github.workspace }}" = "$GITHUB_WORKSPACE" && echo same
- run: exit 7
  continue-on-error: true
- run: echo "\${{ job.container.id != '' }} \${{ hashFiles('words.txt') != '' }}"
`,
    });
    equal(end.result, "success", end.lines.join("\n"));
    const said = end.lines.filter((line) => !line.startsWith("Starting"));
    match(said[0] ?? "", /^in \d+ wheat busybox$/);
    deepEqual(said.slice(1), [
      "words",
      "words",
      "a tool",
      "hello",
      "same",
      "Process completed with exit code 7.",
      "true true",
    ]);
    deepEqual(podman?.left(label), []);
  });

  test("CI-66: services are healthy before the first step, known by name inside and by port outside", async () => {
    const page = "mkdir /w; sleep 1; echo served > /w/index.html; httpd -f -p 80 -h /w";
    const service = `
services:
  web:
    image: ${image}
    ports: ["80"]
    entrypoint: sh
    command: -c "${page}"
    options: --health-cmd "test -f /w/index.html" --health-interval 200ms --health-retries 50
  none: { image: "\${{ vars.NONE }}" }`;
    const outside = await runIn({
      job: service,
      steps: `- run: node -e "fetch('http://127.0.0.1:\${{ job.services.web.ports['80'] }}/').then(async (a) => console.log(await a.text()))"`,
    });
    equal(outside.result, "success", outside.lines.join("\n"));
    ok(outside.lines.includes("served"), outside.lines.join("\n"));
    const inside = await runIn({
      job: `container: ${image}\n${service.trim()}`,
      steps: `- run: wget -qO- http://web/`,
    });
    equal(inside.result, "success", inside.lines.join("\n"));
    ok(inside.lines.includes("served"), inside.lines.join("\n"));
    deepEqual(podman?.left(label), []);
  });

  test("a service that ends, and an image without a shell, are said at once", async () => {
    const job = `services: { web: { image: ${image}, entrypoint: sh, command: "-c 'echo no grain; exit 3'", options: "--health-cmd false --health-interval 100ms" } }`;
    const end = await runIn({ job, steps: "- run: echo never" });
    equal(end.result, "failure");
    match(end.lines.join("\n"), /web \| no grain\n[^]*the service web is not there: it ended with exit code 3/);
    const missing = await runIn({ job: "container: localhost/nobody-has-it:1", steps: "- run: echo never" });
    match(missing.lines.join("\n"), /pulling the image localhost\/nobody-has-it:1 failed/);
    deepEqual([missing.result, podman?.left(label)], ["failure", []]);
  });

  test("what leads out of a container is refused", async () => {
    const wrong = [
      "options: --privileged",
      "options: -v /:/host",
      "volumes: ['/etc:/host']",
      "options: --network=host",
    ];
    for (const one of wrong) {
      const end = await runIn({ job: `container: { image: "${image}", ${one} }`, steps: "- run: echo never" });
      equal(end.result, "failure", one);
      match(end.lines.join("\n"), /is not allowed here|is not open to jobs/, one);
    }
    deepEqual(podman?.left(label), []);
  });

  test("a step's limit of time ends all that it started inside", async () => {
    const end = await runIn({
      job: `container: ${image}`,
      steps: `
- run: |
    trap '' INT TERM
    sleep 471 & echo "began"
    wait; wait
  timeout-minutes: 0.02
  continue-on-error: true
- run: ps | grep -v grep | grep -c "sleep 471" || true
`,
    });
    equal(end.result, "success", end.lines.join("\n"));
    equal(end.lines.at(-1), "0", end.lines.join("\n"));
  });

  test("CI-65: actions that are an image or a Dockerfile, with arguments and a part afterwards", async () => {
    const action = `
name: grind
inputs: { what: { default: rye } }
outputs: { flour: { description: x } }
runs:
  using: docker
  image: Dockerfile
  args: ["\${{ inputs.what }}", "two words"]
  env: { MILL: water }
  post-entrypoint: /after.sh
`;
    const end = await runIn({
      files: {
        ".github/actions/grind/action.yml": action,
        ".github/actions/grind/Dockerfile": `FROM ${image}\nCOPY main.sh after.sh /\nRUN chmod +x /main.sh /after.sh\nENTRYPOINT ["/main.sh"]\n`,
        ".github/actions/grind/main.sh": [
          "#!/bin/sh",
          'echo "ground $1, $2, $MILL, $INPUT_WHAT in $(basename "$(pwd)")"',
          'echo "flour=white" >> "$GITHUB_OUTPUT"',
          "echo from-inside > made.txt",
          'echo "kept=1" >> "$GITHUB_STATE"',
          "",
        ].join("\n"),
        ".github/actions/grind/after.sh": `#!/bin/sh\necho "after with $STATE_kept"\n`,
      },
      steps: `
- uses: ./.github/actions/grind
  id: grind
- run: echo "\${{ steps.grind.outputs.flour }} $(cat made.txt)"
- uses: docker://${image}
  with: { entrypoint: echo, args: 'one "two three"' }
- uses: docker://${image}
  with: { args: 'sh -c "exit 4"' }
  continue-on-error: true
`,
    });
    equal(end.result, "success", end.lines.join("\n"));
    const said = end.lines.join("\n");
    match(said, /ground rye, two words, water, rye in work\n/);
    match(said, /white from-inside\none two three\n/);
    match(said, /exit code 4[^]*after with 1$/);
    deepEqual(podman?.left(label), []);
  });
});
