/**
 * Programs that we never see speak the work protocol: a published name, number or type stays. Additions must be
 * recorded, too: `UPDATE_GOLDEN=1 npm test -- src/wire/published` adds them, and keeps the old entries.
 */
import { deepEqual } from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { describedFiles } from "./descriptors.ts";
import { FileDescriptorProto, type DescriptorProto } from "./generated/google/protobuf/descriptor.ts";
import { decode } from "./message.ts";

const golden = join(import.meta.dirname, "golden", "work-v1.txt");

/** One line for everything that another program may rely on. */
function published(): readonly string[] {
  return describedFiles()
    .map(({ bytes }) => decode(FileDescriptorProto, bytes))
    .filter((file) => file.package.startsWith("millrace."))
    .flatMap((file) => [
      ...file.messageType.flatMap((message) => messageLines(file.package, message)),
      ...file.enumType.flatMap((type) =>
        type.value.map(({ name, number }) => `${file.package}.${type.name} ${name} = ${number}`),
      ),
      ...file.service.flatMap((service) =>
        service.method.map(({ name, inputType, outputType, clientStreaming, serverStreaming }) => {
          const streams = `${clientStreaming ? " stream-in" : ""}${serverStreaming ? " stream-out" : ""}`;
          return `${file.package}.${service.name}/${name} ${inputType} ${outputType}${streams}`;
        }),
      ),
    ])
    .toSorted();
}

function messageLines(scope: string, message: DescriptorProto): readonly string[] {
  const name = `${scope}.${message.name}`;
  return [
    ...message.field.map(({ name: field, number, label, type, typeName, oneofIndex }) => {
      const oneof = oneofIndex === undefined ? "" : ` in ${message.oneofDecl[oneofIndex]?.name}`;
      return `${name}.${field} = ${number} type ${type}${typeName} label ${label}${oneof}`;
    }),
    ...message.nestedType.flatMap((inner) => messageLines(name, inner)),
  ];
}

test("everything published of the work protocol is still there, and additions are recorded", () => {
  const before = existsSync(golden) ? readFileSync(golden, "utf8").trimEnd().split("\n") : [];
  const now = published();
  const gone = before.filter((line) => !now.includes(line));
  deepEqual(gone, [], "never taken away or changed: add a field with a new number instead");
  if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(golden, `${now.join("\n")}\n`);
  else deepEqual(now, before, "UPDATE_GOLDEN=1 npm test -- src/wire/published writes down what is new");
});
