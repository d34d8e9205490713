import { deepEqual, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import { ContainerFault } from "#doors/ci/run/containers.ts";
import { optionWords, portWords, splitWords, volumeWords } from "./options.ts";

const safe = { options: "safe", folders: ["/srv/open"] } as const;
const refused = (work: () => unknown, said: RegExp): void =>
  throws(work, (error) => error instanceof ContainerFault && said.test(error.message));

describe("words for an engine of containers", () => {
  test("a line is split as a shell splits it", () => {
    deepEqual(splitWords(`--a "b c" d'e f'g \\"h ""`), ["--a", "b c", "de fg", '"h', ""]);
    refused(() => splitWords(`--a "b`), /not closed/);
  });

  test("options that change the container itself are passed on, with their values", () => {
    const line = `--memory 1g --cpus=2 --name mine --init --health-cmd "a b"`;
    deepEqual(optionWords(line, safe), ["--memory", "1g", "--cpus=2", "--init", "--health-cmd", "a b"]);
  });

  for (const word of [
    "--privileged",
    "-v=/:/x",
    "--network=host",
    "--pid host",
    "--device /dev/kvm",
    "x",
    "--userns=host",
  ])
    test(`${word} leads out of it, and is refused`, () => {
      refused(() => optionWords(word, safe), /is not allowed here/);
      deepEqual(optionWords(word, { options: "any" }), word.split(" "));
    });

  test("a value cannot pass as an option that has none", () => {
    refused(() => optionWords("--init --privileged", safe), /'--privileged' is not allowed/);
  });

  test("ports are open to this machine alone", () => {
    deepEqual(portWords(["80", "8080:80", "127.0.0.1:1:2/udp"]), [
      "-p",
      "127.0.0.1::80",
      "-p",
      "127.0.0.1:8080:80",
      "-p",
      "127.0.0.1:1:2/udp",
    ]);
    for (const port of ["0.0.0.0:80:80", "80-90", "", "80/sctp"]) refused(() => portWords([port]), /ports: write/);
  });

  test("volumes are the job's own, or folders that are open to jobs", () => {
    const given = ["data:/d", "/x", "/srv/open/a:/a:ro"];
    deepEqual(volumeWords(given, "job", safe), ["-v", "job-data:/d", "-v", "/x", "-v", "/srv/open/a:/a:ro"]);
    for (const volume of ["/srv/open/../../etc:/e", "/srv/opened:/e", "/:/host", "/var/run/docker.sock:/s"])
      refused(() => volumeWords([volume], "job", safe), /is not open to jobs/);
    for (const volume of ["data", "a:b", "data:/d:rw,z", "../x:/d"])
      refused(() => volumeWords([volume], "job", safe), /volumes:/);
  });
});
