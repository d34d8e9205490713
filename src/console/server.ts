/** The public API as the console uses it. A 401 anywhere shows the login page. */
import { signal } from "@preact/signals";
import type { z } from "zod";
import type { showSession } from "#api/session.ts";

export class ServerError extends Error {
  readonly status: number;

  constructor(status: number, title: string) {
    super(title);
    this.status = status;
  }
}

/** Who this browser is to the node; undefined while it is being asked, or when the browser is not signed in. */
export const session = signal<z.output<(typeof showSession)["answer"]["schema"]> | undefined>(undefined);

/** Whether a person has to say who they are. Programs on this machine may be anonymous; people see nothing then. */
export const loginWanted = signal(false);

export async function findSession(): Promise<void> {
  try {
    session.value = await ask("/v1/session");
    loginWanted.value = session.value?.proof === "anonymous";
  } catch (error) {
    if (!(error instanceof ServerError)) throw error;
  }
}

/** Trades a token for a session's cookie, which pages cannot read. */
export async function signIn(token: string): Promise<void> {
  await ask("/v1/session", { method: "POST", headers: { authorization: `Bearer ${token}` } });
  await findSession();
}

export async function signOut(): Promise<void> {
  await ask("/v1/session", { method: "DELETE" });
  session.value = undefined;
  loginWanted.value = true;
}

export async function ask<T>(path: string, init: RequestInit = {}): Promise<T> {
  const response = await fetch(path, {
    ...init,
    headers: { "content-type": "application/json", ...(init.headers as Record<string, string> | undefined) },
  });
  if (response.status === 401) loginWanted.value = true;
  if (!response.ok) {
    const { title = response.statusText } = (await response.json().catch(() => ({}))) as { title?: string };
    throw new ServerError(response.status, title);
  }
  return response.status === 204 ? (undefined as T) : ((await response.json()) as T);
}

export const post = <T>(path: string, body?: object): Promise<T> =>
  ask(path, {
    method: "POST",
    ...(body && { body: JSON.stringify(body) }),
    headers: { "idempotency-key": crypto.randomUUID() },
  });

export async function reasonOf(path: string): Promise<string | undefined> {
  const stop = new AbortController();
  try {
    const response = await fetch(path, { signal: stop.signal });
    if (response.status === 401) loginWanted.value = true;
    if (response.ok) return undefined;
    return ((await response.json()) as { title?: string }).title ?? response.statusText;
  } catch (error) {
    return `the node does not answer: ${String(error)}`;
  } finally {
    stop.abort();
  }
}
