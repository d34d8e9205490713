/**
 * What a delivery of a forge means here. GitHub's words are ours; those of Gitea differ a little, and those of GitLab
 * are translated, so that workflows see one kind of payload. Pure.
 */
import type { PlainValue } from "#doors/ci/workflow/expression/value.ts";
import type { Heading } from "./forge.ts";
import { gitlabEvent } from "./gitlab.ts";
import { fieldsOf, type Fields, numberAt, textAt, valueAt } from "./reading.ts";

/** One event of a forge; several workflows may run on it. */
export type ForgeEvent = {
  readonly name: string;
  readonly action?: string;
  readonly actor: string;
  readonly payload: Readonly<Record<string, PlainValue>>;
  /** Left out: the default branch. */
  readonly ref?: string;
  readonly sha?: string;
  readonly before?: string;
  readonly pull?: Pull;
  /** Of `workflow_dispatch`: what is to be started. */
  readonly dispatch?: {
    readonly workflow: string;
    readonly ref: string;
    readonly inputs: Readonly<Record<string, string>>;
  };
};

export type Pull = {
  readonly number: number;
  readonly head: string;
  readonly headRef: string;
  readonly baseRef: string;
  /** It comes from another repository, or from one that is gone: it gets no secrets (CI-57). */
  readonly isFork: boolean;
};

export type Meaning = { readonly event: ForgeEvent } | { readonly ignored: string };

const shaShape = /^[0-9a-f]{40}$/;

/** Events that are about the default branch, whatever their payload says. */
const general: ReadonlySet<string> = new Set(
  [
    "issues issue_comment label milestone fork watch gollum public page_build status",
    "discussion discussion_comment repository_dispatch branch_protection_rule registry_package",
    "deployment deployment_status check_run check_suite delete",
  ].flatMap((line) => line.split(" ")),
);

export function meaningOf({ forge, event }: Heading, body: Fields): Meaning {
  if (forge === "gitlab") return gitlabEvent(event, body);
  switch (event) {
    case "push":
      return pushed(body);
    case "create":
      return created(body);
    case "pull_request":
    case "pull_request_review":
    case "pull_request_review_comment":
      return pulled(event, body);
    case "merge_group":
      return grouped(body);
    case "workflow_dispatch":
      return dispatched(body);
    case "release":
      return found(
        { name: "release", ...actionOf(body), ...refOf(`refs/tags/${textAt(body, "release", "tag_name")}`) },
        body,
      );
    default:
      return general.has(event)
        ? found({ name: event, ...actionOf(body) }, body)
        : { ignored: `no workflow runs on ${event.slice(0, 50)}` };
  }
}

const found = (event: Omit<ForgeEvent, "payload" | "actor">, body: Fields): Meaning => ({
  event: {
    ...event,
    actor: textAt(body, "sender", "login") ?? textAt(body, "sender", "username") ?? "unknown",
    payload: body as ForgeEvent["payload"],
  },
});

const refOf = (ref: string | undefined) => (ref === undefined ? {} : { ref });

function actionOf(body: Fields): { readonly action?: string } {
  const action = textAt(body, "action");
  return action === undefined ? {} : { action: giteaActions[action] ?? action };
}

const giteaActions: Readonly<Record<string, string>> = {
  synchronized: "synchronize",
  label_updated: "labeled",
  label_cleared: "unlabeled",
};

function pushed(body: Fields): Meaning {
  const [ref, before, after] = [textAt(body, "ref"), textAt(body, "before"), textAt(body, "after")];
  if (ref === undefined || after === undefined || !shaShape.test(after)) return { ignored: "the push names no commit" };
  return found(
    { name: "push", ref, sha: after, ...(before !== undefined && shaShape.test(before) && { before }) },
    body,
  );
}

function created(body: Fields): Meaning {
  const [ref, kind] = [textAt(body, "ref"), textAt(body, "ref_type")];
  if (ref === undefined || (kind !== "branch" && kind !== "tag")) return { ignored: "no branch or tag was created" };
  const short = ref.replace(/^refs\/(heads|tags)\//, "");
  return found({ name: "create", ref: `refs/${kind === "tag" ? "tags" : "heads"}/${short}` }, body);
}

function pulled(name: string, body: Fields): Meaning {
  const request = fieldsOf(body["pull_request"]);
  const number = numberAt(body, "number") ?? numberAt(request, "number");
  const [head, headRef] = [textAt(request, "head", "sha"), textAt(request, "head", "ref")];
  const baseRef = textAt(request, "base", "ref");
  if (
    number === undefined ||
    head === undefined ||
    !shaShape.test(head) ||
    headRef === undefined ||
    baseRef === undefined
  )
    return { ignored: "the pull request names no commits" };
  const isFork = !isOwn(valueAt(request, "head", "repo"), body["repository"]);
  return found({ name, ...actionOf(body), pull: { number, head, headRef, baseRef, isFork } }, body);
}

/** By the forge's own ids, or by name where it sends none. */
function isOwn(head: unknown, repository: unknown): boolean {
  const [from, to] = [fieldsOf(head), fieldsOf(repository)];
  if (from["id"] !== undefined && to["id"] !== undefined) return from["id"] === to["id"];
  const [source, target] = [textAt(from, "full_name"), textAt(to, "full_name")];
  return source !== undefined && source === target;
}

function grouped(body: Fields): Meaning {
  const [ref, sha] = [textAt(body, "merge_group", "head_ref"), textAt(body, "merge_group", "head_sha")];
  if (ref === undefined || sha === undefined || !shaShape.test(sha)) return { ignored: "the group names no commit" };
  return found({ name: "merge_group", ...actionOf(body), ref, sha }, body);
}

function dispatched(body: Fields): Meaning {
  const [workflow, ref] = [textAt(body, "workflow"), textAt(body, "ref")];
  if (workflow === undefined || ref === undefined) return { ignored: "the dispatch names no workflow" };
  const inputs = Object.entries(fieldsOf(body["inputs"])).map(([name, value]) => [name, String(value)] as const);
  return found({ name: "workflow_dispatch", dispatch: { workflow, ref, inputs: Object.fromEntries(inputs) } }, body);
}
