import { equal } from "node:assert/strict";
import { test } from "node:test";
import { noteText, saidOf } from "./run-note.ts";

test("a run's note is read back for its own kind of sandbox, and for no other", () => {
  const said = '{"a":"b\\nc"}\nplain\n';
  const note = noteText({ kind: "plain", said });
  equal(saidOf("plain", note), said);
  equal(saidOf("plain", noteText({ kind: "plain", said: "" })), "");
  equal(saidOf("bubblewrap", note), undefined);
  equal(saidOf("plain", '{"kind":"plain","said":"of another version"}'), undefined);
  equal(saidOf("plain", undefined), undefined);
});
