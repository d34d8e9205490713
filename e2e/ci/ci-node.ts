/** For tests: the calls of the CI door, to a node that runs somewhere. */
import type { z } from "zod";
import { callEndpoint } from "#http/client.ts";
import {
  cancelRun,
  dispatchWorkflow,
  followLog,
  listRuns,
  putRepository,
  readLog,
  rerunRun,
  type RunDetails,
  sendEvent,
  showRun,
} from "#doors/ci/endpoints.ts";
import { until } from "#testing/until.ts";

export type RunShown = z.output<typeof RunDetails>;
const withTenant = (path: string, tenant: string): string => `${path}${path.includes("?") ? "&" : "?"}tenant=${tenant}`;

type LogPage = { readonly id: string | undefined; readonly texts: readonly string[] };

export class CiNode {
  readonly base: string;
  readonly #token: () => string;
  readonly #tenant: string | undefined;

  /** `tenant`: an operator's token may name another than its own. */
  constructor(base: string, token: () => string, tenant?: string) {
    this.base = base;
    this.#token = token;
    this.#tenant = tenant;
  }

  fetch = async (path: string, init: RequestInit = {}): Promise<Response> =>
    await fetch(`${this.base}${this.#tenant === undefined ? path : withTenant(path, this.#tenant)}`, {
      ...init,
      headers: { ...(init.headers as Record<string, string>), authorization: `Bearer ${this.#token()}` },
    });

  /** Without a URL the node keeps it. */
  async register(repository: string, url?: string): Promise<void> {
    await callEndpoint(this.fetch, putRepository, { body: { repository, ...(url !== undefined && { url }) } });
  }

  async dispatch(
    repository: string,
    workflow: string,
    more: { readonly inputs?: Record<string, string>; readonly ref?: string; readonly key?: string } = {},
  ): Promise<string> {
    const [owner = "", name = ""] = repository.split("/");
    const { key, ...rest } = more;
    const { run } = await callEndpoint(this.fetch, dispatchWorkflow, {
      params: { owner, name },
      body: { workflow, ...rest },
      ...(key !== undefined && { idempotencyKey: key }),
    });
    return run;
  }

  async show(run: string): Promise<RunShown> {
    return await callEndpoint(this.fetch, showRun, { params: { run } });
  }

  async list(
    query: Record<string, string> = {},
  ): Promise<readonly { readonly run: string; readonly status: string }[]> {
    return (await callEndpoint(this.fetch, listRuns, { query })).items;
  }

  async cancel(run: string): Promise<void> {
    await callEndpoint(this.fetch, cancelRun, { params: { run } });
  }

  async send(repository: string, body: Parameters<typeof callEndpoint<typeof sendEvent>>[2]["body"]) {
    const [owner = "", name = ""] = repository.split("/");
    return await callEndpoint(this.fetch, sendEvent, { params: { owner, name }, body });
  }

  async rerun(run: string, body: Parameters<typeof callEndpoint<typeof rerunRun>>[2]["body"]): Promise<string> {
    return (await callEndpoint(this.fetch, rerunRun, { params: { run }, body })).run;
  }

  async ended(run: string, limitMs = 180_000): Promise<RunShown> {
    let shown = await this.show(run);
    await until(
      `${run} has ended`,
      async () => (shown = await this.show(run).catch(() => shown)).status === "completed",
      { limitMs, everyMs: 100 },
    );
    return shown;
  }

  async log(run: string, job: string, step?: number): Promise<string> {
    const query = step === undefined ? {} : { step };
    const answer = await callEndpoint(this.fetch, readLog, { params: { run, job }, query });
    return await answer.text();
  }

  /** Lines of a log as they come, until `enough` says so or the log ends. */
  async follow(
    run: string,
    job: string,
    {
      from,
      enough = () => false,
    }: { readonly from?: string; readonly enough?: (texts: readonly string[]) => boolean } = {},
  ): Promise<LogPage> {
    const stop = new AbortController();
    const texts: string[] = [];
    let id = from;
    try {
      const events = await callEndpoint(this.fetch, followLog, {
        params: { run, job },
        query: { follow: "true" },
        signal: stop.signal,
        ...(from !== undefined && { lastEventId: from }),
      });
      for await (const event of events) {
        ({ id } = event);
        texts.push(...event.data.lines.map(({ text }) => text));
        if (enough(texts)) break;
      }
    } finally {
      stop.abort();
    }
    return { id, texts };
  }
}
