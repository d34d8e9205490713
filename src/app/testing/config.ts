/** Configurations for tests: checked, or the reason why not. */
import { ok } from "node:assert/strict";
import { isFault } from "#base/fault.ts";
import { Config } from "#app/config/config.ts";
import { checkText } from "#door/yaml-file.ts";

export const check = (text: string): Config => checkText(text, Config, { doing: "read configuration", file: "c.yaml" });

export function problem(text: string): string {
  try {
    check(text);
    return "none";
  } catch (error) {
    ok(isFault(error, "invalid"), String(error));
    return String(error.facts["why"]);
  }
}
