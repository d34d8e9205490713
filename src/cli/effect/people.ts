/** `effect list`, `effect decide` and `effect remove`: for the people who are asked. */
import { command, serverFlags } from "#door/command.ts";

const tenant = { type: "string", value: "NAME", about: "of this tenant" } as const;

export const effectList = command({
  name: "effect list",
  about: "List effects by key, with who began them and whether they wait for a decision.",
  words: "[prefix]",
  positionalsMax: 1,
  takesRest: false,
  flags: { ...serverFlags, tenant, undecided: { type: "boolean", about: "only those that wait for a person" } },
  examples: ["millrace effect list --undecided", "millrace effect list shared/"],
  async run({ positionals: [prefix], values }, world) {
    const { apiOf } = await import("#cli/api.ts");
    const { listEffects } = await import("#api/effects.ts");
    const { tableLines } = await import("#door/table.ts");
    const api = apiOf(values, world.env, "list effects");
    const rows: string[][] = [];
    let cursor: string | undefined;
    do {
      const query = {
        limit: 100,
        ...(prefix !== undefined && { prefix }),
        ...(values.undecided && { undecided: "true" as const }),
        ...(cursor !== undefined && { cursor }),
      };
      const page = await api(listEffects, { query, ...(values.tenant !== undefined && { tenant: values.tenant }) });
      for (const item of page.items) {
        const state = item.needsDecision ? "needs a decision" : item.isUnknown ? "begun, unknown" : item.phase;
        if (values.json) world.out(JSON.stringify(item));
        else rows.push([item.key, state, String(item.begins), item.at, item.holder.task, item.result ?? ""]);
      }
      cursor = page.next;
    } while (cursor !== undefined);
    if (values.json) return 0;
    const none = ["no effects"];
    for (const line of rows.length > 0 ? tableLines(["KEY", "STATE", "BEGUN", "SINCE", "TASK", "RESULT"], rows) : none)
      world.out(line);
    return 0;
  },
});

export const effectDecide = command({
  name: "effect decide",
  about: "Say whether an effect that was begun and never ended was done: the task that waits goes on.",
  words: "<key>",
  positionalsMax: 1,
  takesRest: false,
  flags: {
    ...serverFlags,
    tenant,
    done: { type: "boolean", about: "it was done: it is not done again" },
    "not-done": { type: "boolean", about: "it was not done: it may be done now" },
    result: { type: "string", value: "TEXT", about: "what it came to" },
    begun: { type: "string", value: "NUMBER", about: "only if it was begun so often, as `effect list` shows it" },
  },
  examples: ["millrace effect decide job/0-31/publish/3 --done"],
  async run({ positionals: [key], values }, world) {
    if (key === undefined || (values.done === true) === (values["not-done"] === true)) {
      world.note("effect decide: give the key (millrace effect list --undecided), and --done or --not-done");
      return 2;
    }
    const { apiOf } = await import("#cli/api.ts");
    const { decideEffect } = await import("#api/effects.ts");
    const said = await apiOf(
      values,
      world.env,
      "decide effect",
    )(decideEffect, {
      params: { key },
      body: {
        wasDone: values.done === true,
        ...(values.result !== undefined && { result: values.result }),
        ...(values.begun !== undefined && { begins: Number(values.begun) }),
      },
      ...(values.tenant !== undefined && { tenant: values.tenant }),
    });
    world.out(values.json ? JSON.stringify(said) : said.answer);
    return said.answer === "accepted" ? 0 : 1;
  },
});

export const effectRemove = command({
  name: "effect remove",
  about: "Remove an effect that has ended from the ledger: who begins it again is told to go.",
  words: "<key>",
  positionalsMax: 1,
  takesRest: false,
  flags: { ...serverFlags, tenant },
  examples: ["millrace effect remove shared/publish/1.2.0"],
  async run({ positionals: [key], values }, world) {
    if (key === undefined) {
      world.note("effect remove: give the key (millrace effect list)");
      return 2;
    }
    const { apiOf } = await import("#cli/api.ts");
    const { removeEffect } = await import("#api/effects.ts");
    const more = values.tenant !== undefined && { tenant: values.tenant };
    await apiOf(values, world.env, "remove effect")(removeEffect, { params: { key }, ...more });
    if (values.json) world.out(JSON.stringify({ key, removed: true }));
    return 0;
  },
});
