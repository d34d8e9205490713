import { command } from "#door/command.ts";

export const batchTypes = command({
  name: "batch types",
  about: "Print TypeScript types of the columns of files: Parquet, CSV or JSON, as they are on this machine.",
  words: "<files>",
  positionalsMax: 1,
  takesRest: false,
  flags: {
    json: { type: "boolean", about: "one JSON object per line" },
    name: { type: "string", value: "NAME", about: "of the type (Row)" },
  },
  examples: ["millrace batch types 'data/*.parquet' --name Event"],
  async run({ positionals: [files], values }, world) {
    const name = values.name ?? "Row";
    if (files === undefined || !/^[A-Z][A-Za-z0-9]*$/.test(name)) {
      world.note("batch types: name files, for example: millrace batch types 'data/*.parquet' --name Event");
      return 2;
    }
    const { describeFiles, typeText } = await import("./describe-files.ts");
    const columns = await describeFiles(files);
    if (values.json) for (const column of columns) world.out(JSON.stringify(column));
    else world.out(typeText(name, columns, files));
    return 0;
  },
});
