/** GitLab's webhooks in the words of GitHub. Pure. */
import type { ForgeEvent, Meaning } from "./forge-event.ts";
import { type Fields, fieldsOf, numberAt, textAt, valueAt } from "./reading.ts";

const shaShape = /^[0-9a-f]{40}$/;

export function gitlabEvent(event: string, body: Fields): Meaning {
  switch (event) {
    case "Push Hook":
    case "Tag Push Hook":
      return pushed(body);
    case "Merge Request Hook":
      return merged(body);
    default:
      return { ignored: `no workflow runs on ${event.slice(0, 50)}` };
  }
}

const repositoryOf = (project: Fields) => {
  const name = textAt(project, "path_with_namespace") ?? "";
  const [owner = "", short = ""] = name.split("/");
  return {
    full_name: name,
    name: short,
    owner: { login: owner, name: owner },
    html_url: textAt(project, "web_url") ?? "",
    default_branch: textAt(project, "default_branch") ?? "",
  };
};

function pushed(body: Fields): Meaning {
  const [ref, before, after] = [textAt(body, "ref"), textAt(body, "before"), textAt(body, "after")];
  if (ref === undefined || after === undefined || !shaShape.test(after)) return { ignored: "the push names no commit" };
  const actor = textAt(body, "user_username") ?? "unknown";
  const payload = {
    ref,
    before: before ?? "",
    after,
    repository: repositoryOf(fieldsOf(body["project"])),
    pusher: { name: actor },
    sender: { login: actor },
  };
  const event: ForgeEvent = {
    name: "push",
    ref,
    sha: after,
    actor,
    payload,
    ...(before !== undefined && shaShape.test(before) && { before }),
  };
  return { event };
}

const actions: Readonly<Record<string, string>> = {
  open: "opened",
  reopen: "reopened",
  update: "edited",
  close: "closed",
  merge: "closed",
};

function merged(body: Fields): Meaning {
  const request = fieldsOf(body["object_attributes"]);
  const number = numberAt(request, "iid");
  const head = textAt(request, "last_commit", "id");
  const [headRef, baseRef] = [textAt(request, "source_branch"), textAt(request, "target_branch")];
  const said = textAt(request, "action") ?? "";
  if (
    number === undefined ||
    head === undefined ||
    !shaShape.test(head) ||
    headRef === undefined ||
    baseRef === undefined
  )
    return { ignored: "the merge request names no commits" };
  // an update that brought commits says what the head was before
  const action = said === "update" && textAt(request, "oldrev") !== undefined ? "synchronize" : actions[said];
  if (action === undefined) return { ignored: `no workflow runs on a merge request's ${said.slice(0, 50)}` };
  const [from, to] = [valueAt(request, "source_project_id"), valueAt(request, "target_project_id")];
  const isFork = from === undefined || from === null || from !== to;
  const actor = textAt(body, "user", "username") ?? "unknown";
  const payload = {
    action,
    number,
    pull_request: {
      number,
      title: textAt(request, "title") ?? "",
      html_url: textAt(request, "url") ?? "",
      draft: valueAt(request, "draft") === true,
      merged: said === "merge",
      head: { ref: headRef, sha: head, repo: repositoryOf(fieldsOf(request["source"])) },
      base: { ref: baseRef, repo: repositoryOf(fieldsOf(request["target"])) },
    },
    repository: repositoryOf(fieldsOf(body["project"])),
    sender: { login: actor },
  };
  return { event: { name: "pull_request", action, actor, payload, pull: { number, head, headRef, baseRef, isFork } } };
}
