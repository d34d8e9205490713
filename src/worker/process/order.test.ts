/** What a lane's shell is sent for which process. */
import { deepEqual, equal, match } from "node:assert/strict";
import { test } from "node:test";
import { boxOrders, orderText, boxOrderText } from "./order.ts";
import type { StartRequest } from "./protocol.ts";

const start: StartRequest = {
  op: "start",
  id: "1",
  tag: "test",
  lane: 0,
  argv: ["/bin/echo", "it's"],
  env: {},
  cwd: "/work",
  stdout: { path: "/out", bytesMax: 1 },
  stderr: { path: "/err", bytesMax: 1 },
  limits: {},
  timeoutMs: 0,
  leaseMs: 1_000,
  sealed: false,
};
const options = { cleanShell: true, grouped: [], othersMax: 0 };
const setpriv =
  "/usr/bin/setpriv --reuid=7 --regid=7 --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all";

type Case = readonly [what: string, more: Partial<StartRequest>, how: Partial<typeof options & { dropTo: number }>];

const cases: readonly (readonly [...Case, lastLines: string])[] = [
  ["a command by itself", {}, {}, "exec '/bin/echo' 'it'\\''s'"],
  [
    "with variables",
    { env: { A: "1", LD_PRELOAD: "x" } },
    {},
    "export A='1' LD_PRELOAD='x'\nexec '/bin/echo' 'it'\\''s'",
  ],
  ["as another user", {}, { dropTo: 7 }, `exec ${setpriv} '/bin/echo' 'it'\\''s'`],
  [
    "as another user, with variables that are harmless before the switch",
    { env: { PATH: "/bin", TEST_TMPDIR: "/t" } },
    { dropTo: 7 },
    `export PATH='/bin' TEST_TMPDIR='/t'\nexec ${setpriv} '/bin/echo' 'it'\\''s'`,
  ],
  ...["LD_PRELOAD", "GLIBC_TUNABLES", "LANG", "LC_ALL", "PATH_X", "xTEST_A", "TESTING"].map(
    (key) =>
      [
        `as another user, with ${key}, which is set only after the switch`,
        { env: { PATH: "/bin", [key]: "1" } },
        { dropTo: 7 },
        `exec ${setpriv} /usr/bin/env -i 'PATH=/bin' '${key}=1' '/bin/echo' 'it'\\''s'`,
      ] as const,
  ),
  [
    "in a shell that exports variables of its own",
    { env: { PATH: "/bin" } },
    { cleanShell: false },
    "exec /usr/bin/env -i 'PATH=/bin' '/bin/echo' 'it'\\''s'",
  ],
];

test("a run with a talker has pipes instead of nothing and a file", () => {
  const talk = { stdin: "/in", stdout: "/an'swers" };
  match(orderText({ ...start, talk }, options), /^exec 6<&- <'\/in' >'\/an'\\''swers' 2>>'\/err'\n/);
});

for (const [what, more, how, last] of cases)
  test(`an order: ${what}`, () => {
    const text = orderText({ ...start, ...more }, { ...options, ...how });
    const after = "unset PWD OLDPWD\n";
    equal(text.slice(text.indexOf(after) + after.length), `${last}\n`);
  });

test("a waiting sandbox: its arguments around its root, then a shell that waits for its own number", () => {
  const boxes = { before: ["box", "--root"], after: ["--"], env: { PATH: "/bin" }, network: "own" } as const;
  const lines = boxOrders(boxes).text("/it's", 7).split("\n");
  const at = "'/it'\\''s/'";
  equal(lines[0], `exec >>${at}stdout 2>>${at}stderr 9<>${at}status 8<./told || exit 126`);
  equal(lines.at(-3), "export PATH='/bin'");
  const wait = `'while read -r no <&6; do if [ "$no" = 7 ]; then . /proc/self/fd/8; exit 126; fi; done; exit 125'`;
  equal(lines.at(-2), `exec 'box' '--root' ${at}root '--' '/bin/sh' '-c' ${wait}`);
});

test("its order: none of our descriptors stay open, and then as any other order", () => {
  const lines = boxOrderText({ ...start, limits: { memoryBytes: 1_024 } }, { ...options, grouped: ["memory"] }).split(
    "\n",
  );
  deepEqual(lines.slice(0, 3), ["exec 6<&- 8<&-", "ulimit -c 0", "cd '/work' || exit 126"]);
  equal(lines.at(-2), "exec '/bin/echo' 'it'\\''s'");
});
