import { deepEqual, ok } from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ToolPool, type Taken } from "./tool-pool.ts";

const told = (taken: Taken): string =>
  taken.kind === "none"
    ? "none"
    : `${taken.kind} ${taken.id}${taken.kind === "new" && taken.ends ? ` for ${taken.ends}` : ""}`;

/** One step per line: what is done, and its result. */
function transcript(steps: string, toolsMax = 2): readonly string[] {
  const pool = new ToolPool({ toolsMax, idleMs: 100 });
  return steps
    .trim()
    .split("\n")
    .map((step) => {
      const [verb, what = "", at] = step.trim().split(" ");
      const said = ((): string => {
        switch (verb) {
          case "take":
            return told(pool.take(what));
          case "back":
            return String(pool.giveBack(Number(what), Number(at)) ?? "");
          case "end":
            return String(pool.end(Number(what)) ?? "");
          case "gone":
            return String(pool.gone(Number(what)) ?? "");
          default:
            return `old: ${pool.overdue(Number(what)).join(" ")}`;
        }
      })();
      const { lent, idle } = pool.counts;
      return `${step.trim()}${said === "" ? "" : ` -> ${said}`} (${lent}+${idle})`;
    });
}

test("O2: a tool is lent to one request at a time, and only for its own key", () => {
  deepEqual(
    transcript(`
      take javac
      take javac
      take javac
      back 1 10
      take kotlinc
      take javac
    `),
    [
      "take javac -> new 1 (1+0)",
      "take javac -> new 2 (2+0)",
      "take javac -> none (2+0)",
      "back 1 10 (1+1)",
      "take kotlinc -> new 3 for 1 (2+0)",
      "take javac -> none (2+0)",
    ],
  );
});

test("the most recently used one is taken first, and the least recently used one ends first", () => {
  deepEqual(
    transcript(`
      take javac
      take javac
      back 1 10
      back 2 20
      take javac
      back 2 30
      take other
      old 109
      old 130
    `),
    [
      "take javac -> new 1 (1+0)",
      "take javac -> new 2 (2+0)",
      "back 1 10 (1+1)",
      "back 2 20 (0+2)",
      "take javac -> kept 2 (1+1)",
      "back 2 30 (0+2)",
      "take other -> new 3 for 1 (1+1)",
      "old 109 -> old:  (1+1)",
      "old 130 -> old: 2 (1+1)",
    ],
  );
});

test("O3: the slot of an ending tool is reserved once, for a successor that waits for it", () => {
  deepEqual(
    transcript(`
      take javac
      take javac
      end 1
      take javac
      take javac
      back 1 5
      gone 1
      take javac
      gone 2
      take javac
    `),
    [
      "take javac -> new 1 (1+0)",
      "take javac -> new 2 (2+0)",
      "end 1 (1+0)",
      "take javac -> new 3 for 1 (2+0)",
      "take javac -> none (2+0)",
      "back 1 5 (2+0)",
      "gone 1 (2+0)",
      "take javac -> none (2+0)",
      "gone 2 (1+0)",
      "take javac -> new 4 (2+0)",
    ],
  );
});

test("with toolsMax 0 no tool is kept", () => {
  deepEqual(transcript("take javac", 0), ["take javac -> none (0+0)"]);
});

test("O2, O3: whatever is done, no more are alive than allowed, and none is lent twice", () => {
  const step = fc.tuple(fc.constantFrom("take", "back", "end", "gone"), fc.nat(3), fc.nat(20));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), fc.integer({ min: 1, max: 4 }), (steps, toolsMax) => {
      const pool = new ToolPool({ toolsMax, idleMs: 5 });
      const keys = new Map<number, string>();
      const lent = new Set<number>();
      /** Tools whose process exists; a new one's does when its predecessor is gone. */
      const alive = new Set<number>();
      const waiting = new Map<number, number>();
      const gone = (id: number): void => {
        pool.gone(id);
        alive.delete(id);
        lent.delete(id);
        for (const [next, before] of waiting)
          if (before === id) {
            waiting.delete(next);
            alive.add(next);
          }
      };
      for (const [verb, key, pick] of steps) {
        const id = [...alive][pick % Math.max(1, alive.size)];
        if (verb === "take") {
          const taken = pool.take(String(key));
          if (taken.kind === "none") continue;
          ok(!lent.has(taken.id));
          lent.add(taken.id);
          if (taken.kind === "kept") ok(keys.get(taken.id) === String(key) && alive.has(taken.id));
          else {
            keys.set(taken.id, String(key));
            if (taken.ends !== undefined) lent.delete(taken.ends);
            if (taken.ends !== undefined && alive.has(taken.ends)) waiting.set(taken.id, taken.ends);
            else alive.add(taken.id);
          }
        } else if (id !== undefined) {
          if (verb === "back") pool.giveBack(id, pick);
          if (verb === "end") pool.end(id);
          if (verb === "gone") {
            pool.end(id);
            gone(id);
          }
          lent.delete(id);
        }
        ok(alive.size <= toolsMax, `${alive.size} alive`);
      }
    }),
    { numRuns: 500 },
  );
});
