/** The public API as the console uses it. A 401 anywhere shows the login page. */
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import type { z } from "zod";
import type { showSession } from "#api/session.ts";

export class ServerError extends Error {
  readonly status: number;

  constructor(status: number, title: string) {
    super(title);
    this.status = status;
  }
}

/** Who this browser is to the node; undefined while that is being asked, or when it is nobody. */
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

export const post = <T>(path: string, body: object): Promise<T> =>
  ask(path, { method: "POST", body: JSON.stringify(body), headers: { "idempotency-key": crypto.randomUUID() } });

export type Live<T> = { readonly value: T | undefined; readonly problem: string | undefined; readonly isLive: boolean };

/**
 * Follows a stream of server-sent events; every event replaces the value. EventSource reconnects by itself, and tells
 * nothing of why it failed, so the same address is asked once to learn the reason.
 */
export function useLive<T>(path: string, isLast: (value: T) => boolean = () => false): Live<T> {
  const [live, setLive] = useState<Live<T>>({ value: undefined, problem: undefined, isLive: false });
  useEffect(() => {
    setLive({ value: undefined, problem: undefined, isLive: false });
    const source = new EventSource(path);
    source.addEventListener("message", ({ data }: MessageEvent<string>) => {
      const value = JSON.parse(data) as T;
      setLive({ value, problem: undefined, isLive: true });
      if (isLast(value)) source.close(); // or it would connect again and hear the same
    });
    source.addEventListener("error", () => {
      setLive((before) => ({ ...before, isLive: false }));
      if (source.readyState !== EventSource.CLOSED) return;
      void reasonOf(path).then((problem) => setLive((before) => ({ ...before, problem })));
    });
    return () => source.close();
  }, [path]);
  return live;
}

async function reasonOf(path: string): Promise<string | undefined> {
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

/** A value that is asked for once, and again every `everyMs` where that is given. */
export function useAsked<T>(path: string, everyMs?: number): Live<T> {
  const [asked, setAsked] = useState<Live<T>>({ value: undefined, problem: undefined, isLive: false });
  useEffect(() => {
    let isOver = false;
    const once = (): void =>
      void ask<T>(path).then(
        (value) => isOver || setAsked({ value, problem: undefined, isLive: true }),
        (error: Error) => isOver || setAsked((before) => ({ ...before, problem: error.message, isLive: false })),
      );
    once();
    const timer = everyMs === undefined ? undefined : setInterval(once, everyMs);
    return () => {
      isOver = true;
      clearInterval(timer);
    };
  }, [path, everyMs]);
  return asked;
}
