/** Serves /v1/effects. */
import type { Caller } from "#access/caller.ts";
import type { ClaimOf } from "#access/principal.ts";
import {
  askEffect,
  beginEffect,
  commitEffect,
  decideEffect,
  listEffects,
  removeEffect,
  showEffect,
  undoEffect,
} from "#api/effects.ts";
import { type EffectCommand, type Effects, effectsTag } from "#effects/effects.ts";
import type { Answer, Entry, Holder } from "#effects/ledger.ts";
import { Problem } from "#http/problem.ts";
import { route, type Route } from "#http/route.ts";
import type { Typed } from "#records/typed.ts";
import type { WorkClient } from "#shard/client/client.ts";

export type EffectPorts = { readonly effects: Effects; readonly work: Pick<WorkClient, "job"> };

type Named = { readonly name: string; readonly isShared: boolean };

export function effectRoutes({ effects, work }: EffectPorts): readonly Route[] {
  const change = async (caller: Caller, { name, isShared }: Named, command: (holder: Holder) => EffectCommand) => {
    const claim = claimOf(caller);
    const key = isShared ? `shared/${name}` : `job/${await ledgerOf(work, claim.job)}/${name}`;
    const { job, task, token } = claim;
    return { body: said(key, await effects.change(claim.tenant, key, command({ job, task, token }))) };
  };
  /** A task sees the effects of its own job. */
  const ownPrefix = async ({ principal: { claim } }: Caller): Promise<string | undefined> =>
    claim && `job/${await ledgerOf(work, claim.job)}/`;
  return [
    route(beginEffect, ({ caller, body }) => change(caller, body, (holder) => ({ kind: "begin", holder }))),
    route(commitEffect, ({ caller, body }) =>
      change(caller, body, (holder) => ({ kind: "commit", holder, result: body.result })),
    ),
    route(undoEffect, ({ caller, body }) => change(caller, body, (holder) => ({ kind: "undo", holder }))),
    route(askEffect, ({ caller, body }) => change(caller, body, (holder) => ({ kind: "ask", holder }))),
    route(decideEffect, async ({ caller, tenant, params: { key }, body: { wasDone, result, begins } }) => {
      const as = wasDone ? "done" : "not-done";
      const by = caller.principal.name;
      return { body: said(key, await effects.change(tenant, key, { kind: "decide", as, by, result, begins })) };
    }),
    route(removeEffect, async ({ tenant, params: { key } }) => {
      const found = await effects.find(tenant, key);
      if (!found) throw new Problem(404, "key: there is no such effect; list them with GET /v1/effects");
      if (found.value.phase === "begun")
        throw new Problem(
          409,
          "key: it was begun and has not ended; say first whether it was done: millrace effect decide",
        );
      if (!(await effects.remove(tenant, key, found.version)))
        throw new Problem(409, "key: the effect has changed meanwhile; look at it again");
      return undefined;
    }),
    route(showEffect, async ({ caller, tenant, params: { key } }) => {
      const own = await ownPrefix(caller);
      const found = own === undefined || key.startsWith(own) ? await effects.find(tenant, key) : undefined;
      if (!found) throw new Problem(404, "key: there is no such effect; list them with GET /v1/effects");
      return { body: shown(found) };
    }),
    route(listEffects, async ({ caller, tenant, query: { limit, cursor, prefix, undecided } }) => {
      const page = await effects.list({ tenant, limit, cursor, prefix: (await ownPrefix(caller)) ?? prefix });
      const items = page.records.filter(({ value }) => undecided !== "true" || value.needsDecision).map(shown);
      return { body: { items, ...(page.cursor !== undefined && { next: page.cursor }) } };
    }),
  ];
}

function claimOf({ principal: { claim } }: Caller): ClaimOf {
  if (!claim) throw new Problem(403, "effects are begun and ended by tasks, with the token that a task is given");
  return claim;
}

/** A job that repeats another says so by a tag: what the first did is not done again. */
async function ledgerOf(work: Pick<WorkClient, "job">, job: string): Promise<string> {
  const { tags = [] } = (await work.job(job, { tasksMax: 0 })).view;
  return tags.find(({ name }) => name === effectsTag)?.value ?? job;
}

function said(key: string, answer: Answer) {
  const { kind } = answer;
  if (kind === "done") return { key, answer: kind, result: answer.result };
  if (kind === "unknown") return { key, answer: kind, holder: answer.before };
  if (kind === "busy" || kind === "stale") return { key, answer: kind, holder: answer.holder };
  return { key, answer: kind };
}

const shown = ({ name, value: { atMs, ...entry } }: Typed<Entry>) => ({
  key: name,
  ...entry,
  at: new Date(atMs).toISOString(),
});
