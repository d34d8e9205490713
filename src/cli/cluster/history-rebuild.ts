import type { RebuildOutcome } from "#app/node/rebuild.ts";
import { command, jsonFlag, type ExitCode, type World } from "#door/command.ts";

export const historyRebuild = command({
  name: "history rebuild",
  about: "Write the history of ended jobs anew from the archived log, while the node is stopped.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: {
    ...jsonFlag,
    shard: { type: "string", value: "NUMBER", about: "only this shard" },
    config: {
      type: "string",
      value: "FILE",
      about: "the node's configuration ($MILLRACE_CONFIG); config.yaml in the data folder otherwise",
    },
    set: { type: "strings", value: "PATH=VALUE", about: "one setting, such as journal.kind=sqlite; may be repeated" },
    data: {
      type: "string",
      value: "FOLDER",
      about: "the data folder of the stopped node ($MILLRACE_DATA, ~/.millrace)",
    },
  },
  examples: ["millrace history rebuild", "millrace history rebuild --shard 3 --config node.yaml"],
  async run({ values }, world) {
    if (values.shard !== undefined && !/^\d{1,6}$/.test(values.shard)) {
      world.note(`history rebuild: --shard takes a number, such as 3 (see: millrace shards)`);
      return 2;
    }
    const only = values.shard === undefined ? undefined : Number(values.shard);
    const [{ configured }, { rebuildHistories }, { explain }] = await Promise.all([
      import("#cli/up-node.ts"),
      import("#app/node/rebuild.ts"),
      import("#cli/errors.ts"),
    ]);
    await using undo = new AsyncDisposableStack();
    const { config, folder } = await configured(values, world, undo);
    let code: ExitCode = 0;
    const outcomes = rebuildHistories(config, folder, {
      only,
      log: world.note,
      onProgress: ({ shard, doing, seq, tailSeq, rows }) =>
        world.progress(`shard ${shard}: ${doing} ${Math.floor((100 * seq) / tailSeq)}%, ${rows} rows`),
    });
    for await (const outcome of outcomes) {
      world.progress("");
      if (outcome.kind !== "rebuilt") code = 1;
      say(outcome, world, { isJson: values.json === true, explain });
    }
    return code;
  },
});

type Telling = { readonly isJson: boolean; readonly explain: (error: unknown) => readonly string[] };

function say(outcome: RebuildOutcome, { out, note }: World, { isJson, explain }: Telling): void {
  const { kind, shard } = outcome;
  if (isJson) {
    const { error, ...facts } = { error: undefined, ...outcome };
    out(JSON.stringify(error === undefined ? facts : { ...facts, why: explain(error)[0] }));
    return;
  }
  switch (kind) {
    case "rebuilt":
      return out(`shard ${shard}: ${outcome.rows} rows from ${outcome.throughSeq} batches`);
    case "owned":
      return note(`shard ${shard}: left alone: node ${outcome.owner} has it; stop that node and try again`);
    case "refused":
      return note(`shard ${shard}: left alone: ${outcome.why}`);
    case "failed":
      return note(`shard ${shard}: ${explain(outcome.error)[0] ?? "failed"}`);
    default:
      return outcome satisfies never;
  }
}
