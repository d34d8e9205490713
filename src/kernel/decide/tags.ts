/** The shape of tags: few, short, sorted by name, each name once. */
import type { Limits } from "#kernel/model/limits.ts";
import type { Rejection } from "#kernel/model/rejection.ts";
import { within, wrongList, wrongText } from "./validate.ts";

type Wrong = Rejection | undefined;

/** Plain, so that `name=value` can be typed and taken apart again. */
const nameShape = /^[A-Za-z0-9][A-Za-z0-9._/-]*$/;
// oxlint-disable-next-line no-control-regex -- they are what is refused
const control = /[\u0000-\u001f\u007f]/;

export function wrongTags(path: string, tags: unknown, limits: Limits): Wrong {
  const wrong = wrongList(path, tags, limits.tagsMax);
  if (wrong) return wrong;
  let last = "";
  for (const [i, tag] of (tags as readonly unknown[]).entries()) {
    const { name, value } = (tag ?? {}) as { readonly name?: unknown; readonly value?: unknown };
    const wrongOne =
      wrongText("name", name, limits.tagNameLengthMax, 1) ?? wrongText("value", value, limits.tagValueLengthMax, 1);
    if (wrongOne) return within(`${path}[${i}]`, wrongOne);
    if (!nameShape.test(name as string))
      return invalid(`${path}[${i}].name`, "must be letters, digits and . _ / -, and begin with a letter or digit");
    if (control.test(value as string)) return invalid(`${path}[${i}].value`, "must not contain control characters");
    if ((name as string) <= last) return invalid(path, "must be sorted by name, each name once");
    last = name as string;
  }
  return undefined;
}

const invalid = (path: string, why: string): Rejection => ({ kind: "invalid", path, why });
