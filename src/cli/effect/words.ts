/** What the commands about effects share. */
import { randomUUID } from "node:crypto";
import { askEffect, beginEffect, commitEffect, showEffect, undoEffect } from "#api/effects.ts";
import { apiOf, withPatience } from "#cli/api.ts";
import type { ServerFlagValues, World } from "#door/command.ts";

/** A node that restarts is waited for: the request's key makes it safe to send it again. */
const patienceMs = 60_000;

const endpoints = { begin: beginEffect, commit: commitEffect, undo: undoEffect, ask: askEffect } as const;

/** Where the task and its step are in the job: the same in every attempt. Their effects have names below it. */
export const stepVariable = "MILLRACE_STEP";

export type Named = { readonly name: string; readonly isShared: boolean };

/** Two steps may both say "deploy" and mean two effects; a shared effect is one, whichever step names it. */
export function namedBy(name: string, values: { readonly shared?: boolean }, env: NodeJS.ProcessEnv): Named {
  const isShared = values.shared === true;
  const step = env[stepVariable];
  return { name: isShared || step === undefined || step === "" ? name : `${step}/${name}`, isShared };
}

export type Ledger = ReturnType<typeof ledgerOf>;

export function ledgerOf(values: ServerFlagValues, world: World) {
  const tell = async (does: keyof typeof endpoints, named: Named, more: { readonly result?: string } = {}) => {
    const idempotencyKey = randomUUID();
    return await withPatience(patienceMs, () =>
      apiOf(
        values,
        world.env,
        `${does} effect ${named.name}`,
      )(endpoints[does], {
        body: { ...named, ...more },
        idempotencyKey,
      }),
    );
  };
  return {
    tell,
    /** How the entry is now, without changing it. */
    look: async (key: string) =>
      await withPatience(patienceMs, () =>
        apiOf(values, world.env, `look at effect ${key}`)(showEffect, { params: { key } }),
      ),
  };
}
