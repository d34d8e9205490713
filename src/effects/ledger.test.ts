import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { type Answer, type Command, type Entry, type Holder, step } from "./ledger.ts";

const by = (token: number, task = "t"): Holder => ({ job: "j", task, token });
const begin = (token: number, isHolderLive = false, task = "t"): Command => ({
  kind: "begin",
  holder: by(token, task),
  isHolderLive,
});
const commit = (token: number, result = "ok"): Command => ({ kind: "commit", holder: by(token), result });

/** The kinds of the answers to commands, one after the other. */
function answers(...commands: readonly Command[]): readonly Answer["kind"][] {
  let entry: Entry | undefined;
  return commands.map((command, at) => {
    const next = step(entry, command, at);
    entry = next.entry ?? entry;
    return next.answer.kind;
  });
}

describe("the ledger of effects", () => {
  const cases: readonly { name: string; commands: readonly Command[]; says: readonly Answer["kind"][] }[] = [
    { name: "begun and committed once", commands: [begin(1), commit(1)], says: ["go", "accepted"] },
    {
      name: "a repeated commit gets its first answer",
      commands: [begin(1), commit(1), commit(1)],
      says: ["go", "accepted", "accepted"],
    },
    {
      name: "the next attempt hears that it is done",
      commands: [begin(1), commit(1), begin(2)],
      says: ["go", "accepted", "done"],
    },
    {
      name: "EF3 begun and never ended is unknown to the next attempt",
      commands: [begin(1), begin(2)],
      says: ["go", "unknown"],
    },
    {
      name: "EF3 also to the one after that",
      commands: [begin(1), begin(2), begin(3)],
      says: ["go", "unknown", "unknown"],
    },
    { name: "EF3 also within one attempt", commands: [begin(1), begin(1, true)], says: ["go", "unknown"] },
    {
      name: "EF2 an attempt that was replaced cannot commit",
      commands: [begin(1), begin(2), commit(1), commit(2)],
      says: ["go", "unknown", "stale", "accepted"],
    },
    { name: "EF2 nor begin again", commands: [begin(1), begin(2), begin(1)], says: ["go", "unknown", "stale"] },
    {
      name: "EF2 nor take it back",
      commands: [begin(1), begin(2), { kind: "undo", holder: by(1) }],
      says: ["go", "unknown", "stale"],
    },
    {
      name: "EF1 a holder that did nothing gives it back",
      commands: [begin(1), { kind: "undo", holder: by(1) }, begin(2)],
      says: ["go", "accepted", "go"],
    },
    {
      name: "EF1 another task waits for a live holder",
      commands: [begin(1), begin(1, true, "other")],
      says: ["go", "busy"],
    },
    {
      name: "another task hears unknown when the holder is gone",
      commands: [begin(1), begin(1, false, "other")],
      says: ["go", "unknown"],
    },
    { name: "a commit without a begin", commands: [commit(1)], says: ["not-begun"] },
    {
      name: "a commit with another result",
      commands: [begin(1), commit(1), commit(1, "other")],
      says: ["go", "accepted", "done"],
    },
    {
      name: "a person decides that it was done",
      commands: [
        begin(1),
        begin(2),
        { kind: "ask", holder: by(2) },
        { kind: "decide", as: "done", by: "ada", result: "seen" },
        begin(2),
      ],
      says: ["go", "unknown", "accepted", "accepted", "done"],
    },
    {
      name: "a person decides that it was not done",
      commands: [begin(1), begin(2), { kind: "decide", as: "not-done", by: "ada", result: "" }, begin(2), commit(2)],
      says: ["go", "unknown", "accepted", "go", "accepted"],
    },
    {
      name: "EF2 a person who looked before it was begun again is stale",
      commands: [
        begin(1),
        begin(2),
        { kind: "decide", as: "not-done", by: "ada", result: "", begins: 1 },
        { kind: "decide", as: "not-done", by: "ada", result: "", begins: 2 },
        begin(2),
        { kind: "decide", as: "not-done", by: "eve", result: "", begins: 2 },
      ],
      says: ["go", "unknown", "stale", "accepted", "go", "stale"],
    },
    {
      name: "there is nothing to decide",
      commands: [{ kind: "decide", as: "done", by: "ada", result: "" }],
      says: ["not-begun"],
    },
  ];
  for (const { name, commands, says } of cases) test(name, () => deepEqual(answers(...commands), says));

  test("an entry says who asked for a decision and who decided", () => {
    const asked = step(step(undefined, begin(1), 1).entry, { kind: "ask", holder: by(1) }, 2).entry;
    equal(asked?.needsDecision, true);
    const decided = step(asked, { kind: "decide", as: "done", by: "ada", result: "seen" }, 3).entry;
    equal(decided?.needsDecision, false);
    equal(decided?.decidedBy, "ada");
  });

  test("EF1 whatever attempts die where, the effect is never silently done twice", () => {
    // each attempt begins, and dies before the effect, after it, or commits; what it does when unknown is not "silent"
    const attempt = fc.record({ dies: fc.constantFrom("before", "after", "never"), late: fc.boolean() });
    fc.assert(
      fc.property(fc.array(attempt, { maxLength: 12 }), (attempts) => {
        let entry: Entry | undefined;
        let silent = 0;
        const late: Command[] = [];
        const tell = (command: Command): Answer => {
          const next = step(entry, command, 0);
          entry = next.entry ?? entry;
          return next.answer;
        };
        for (const [at, { dies, late: isLate }] of attempts.entries()) {
          const answer = tell(begin(at + 1));
          for (const command of late.splice(0)) ok(tell(command).kind !== "accepted", "a stale commit was accepted");
          if (answer.kind !== "go" || dies === "before") continue;
          silent += 1;
          if (dies === "never") tell(commit(at + 1));
          else if (isLate) late.push(commit(at + 1));
        }
        ok(silent <= 1, `done ${silent} times without a warning`);
      }),
    );
  });
});
