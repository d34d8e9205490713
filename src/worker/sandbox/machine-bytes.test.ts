import { equal, ok } from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { totalmem, tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { groupBytes, machineBytes } from "./machine-bytes.ts";

test("the machine's memory is limited by the groups around us, also if our own has no limit", () => {
  const mount = mkdtempSync(join(tmpdir(), "millrace-bytes-"));
  try {
    const mounts = `30 25 0:26 / ${mount} rw - cgroup2 cgroup rw`;
    const leaf = join(mount, "pod/box/millrace-own");
    mkdirSync(leaf, { recursive: true });
    const limits = { [mount]: "", [join(mount, "pod")]: "7000", [join(mount, "pod/box")]: "5000", [leaf]: "max" };
    for (const [path, bytes] of Object.entries(limits)) {
      writeFileSync(join(path, "cgroup.controllers"), "");
      if (bytes !== "") writeFileSync(join(path, "memory.max"), `${bytes}\n`);
    }
    equal(groupBytes({ mounts, own: "0::/pod/box/millrace-own\n" }), 5_000);
    equal(groupBytes({ mounts, own: "0::/pod\n" }), 7_000);
    equal(groupBytes({ mounts, own: "0::/\n" }), Infinity);
    equal(groupBytes({ mounts: "", own: "0::/\n" }), Infinity);
  } finally {
    rmSync(mount, { recursive: true });
  }
  ok(machineBytes() > 0 && machineBytes() <= totalmem());
});
