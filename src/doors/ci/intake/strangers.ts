/**
 * Who has contributed to a repository before (CI-57): a pull request from a fork by anyone else waits for a person. The
 * forge says it of most, and a request that was merged says it of the rest.
 */
import { z } from "zod";
import { recordsOf } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";
import type { Repository } from "#sources/book.ts";
import type { ForgeEvent } from "./forge-event.ts";
import { fieldsOf, textAt } from "./reading.ts";

export const forkRules = ["first-time", "all", "none"] as const;
export type ForkRule = (typeof forkRules)[number];

const Contributor = z.object({ repository: z.string(), person: z.string() });
const contributorsMax = 50_000;

/** As GitHub names them: of the first three the forge lets people in itself. */
const associated: ReadonlySet<string> = new Set(["OWNER", "MEMBER", "COLLABORATOR", "CONTRIBUTOR"]);

export class Strangers {
  readonly #kept;
  readonly #rule: ForkRule;

  constructor(records: Records, rule: ForkRule) {
    const limits = { countMax: contributorsMax, bytesMax: 64 * 1024 * 1024 };
    this.#kept = recordsOf(records, { kind: "ci.contributor", schema: Contributor, limits });
    this.#rule = rule;
  }

  /** Whether what the event starts has to be approved first. */
  async mustWait(repository: Repository, { pull, payload, actor }: ForgeEvent): Promise<boolean> {
    if (!pull?.isFork || this.#rule === "none") return false;
    if (this.#rule === "all") return true;
    const request = fieldsOf(payload["pull_request"]);
    if (associated.has(textAt(request, "author_association") ?? "")) return false;
    return (await this.#kept.read(repository.tenant, keyOf(repository, authorOf(payload, actor)))) === undefined;
  }

  /** A request that was merged makes its author known. */
  async learn(repository: Repository, { name, action, pull, payload, actor }: ForgeEvent): Promise<void> {
    const isMerged = fieldsOf(payload["pull_request"])["merged"] === true;
    if (name !== "pull_request" || !pull || action !== "closed" || !isMerged) return;
    const person = authorOf(payload, actor);
    await this.#kept.create(repository.tenant, keyOf(repository, person), { repository: repository.name, person });
  }
}

/** Who sends the event may be another: a member who names a label, for example. */
function authorOf(payload: ForgeEvent["payload"], actor: string): string {
  const user = fieldsOf(fieldsOf(payload["pull_request"])["user"]);
  return textAt(user, "login") ?? textAt(user, "username") ?? actor;
}

const keyOf = ({ name }: Repository, person: string): string =>
  `${name.toLowerCase()}/${encodeURIComponent(person.toLowerCase()).slice(0, 200)}`;
