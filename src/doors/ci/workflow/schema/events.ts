/** What may stand below `on:`. */
import {
  among,
  any,
  boolean,
  type Definition,
  mapOf,
  mapping,
  nonEmpty,
  nonEmptyList,
  nothing,
  number,
  oneOf,
  oneOrMore,
  sequence,
  string,
  within,
} from "./definition.ts";
import { places } from "./places.ts";

const edits = ["created", "edited", "deleted"];
const pullRequest = [
  "assigned",
  "unassigned",
  "labeled",
  "unlabeled",
  "opened",
  "edited",
  "closed",
  "reopened",
  "synchronize",
  "converted_to_draft",
  "locked",
  "unlocked",
  "enqueued",
  "dequeued",
  "milestoned",
  "demilestoned",
  "ready_for_review",
  "review_requested",
  "review_request_removed",
  "auto_merge_enabled",
  "auto_merge_disabled",
  "stacked",
];
const issues = [
  "opened",
  "edited",
  "deleted",
  "transferred",
  "pinned",
  "unpinned",
  "closed",
  "reopened",
  "assigned",
  "unassigned",
  "labeled",
  "unlabeled",
  "locked",
  "unlocked",
  "milestoned",
  "demilestoned",
  "field_added",
  "field_removed",
  "typed",
  "untyped",
];
const discussion = [
  "created",
  "edited",
  "deleted",
  "transferred",
  "pinned",
  "unpinned",
  "labeled",
  "unlabeled",
  "locked",
  "unlocked",
  "category_changed",
  "answered",
  "unanswered",
];

const types = (...values: readonly string[]): Definition => oneOf(among(...values), sequence(among(...values)));
const event = (properties: Readonly<Record<string, Definition>>): Definition => oneOf(nothing, mapping(properties));
const withTypes = (...values: readonly string[]): Definition => event({ types: types(...values) });

const branches = { branches: oneOrMore, "branches-ignore": oneOrMore };
const paths = { paths: oneOrMore, "paths-ignore": oneOrMore };
const tags = { tags: oneOrMore, "tags-ignore": oneOrMore };

const callInput = mapping({
  description: string,
  "type!": among("string", "boolean", "number"),
  required: boolean,
  default: within(places.callInputDefault, oneOf(string, boolean, number)),
});

const workflowCall = event({
  inputs: mapOf(callInput),
  secrets: mapOf(oneOf(nothing, mapping({ description: string, required: boolean }))),
  outputs: mapOf(mapping({ description: string, "value!": within(places.callOutput, string) })),
});

const dispatchInput = mapping({
  description: string,
  deprecationMessage: string,
  type: among("string", "boolean", "number", "environment", "choice"),
  required: boolean,
  default: oneOf(string, boolean, number),
  options: sequence(string),
});

const events: Readonly<Record<string, Definition>> = {
  branch_protection_rule: withTypes(...edits),
  check_run: withTypes("completed", "created", "rerequested", "requested_action"),
  check_suite: withTypes("completed"),
  create: nothing,
  delete: nothing,
  deployment: nothing,
  deployment_status: nothing,
  discussion: withTypes(...discussion),
  discussion_comment: withTypes(...edits),
  fork: nothing,
  gollum: nothing,
  image_version: event({ types: types("created", "ready", "deleted"), names: oneOrMore, versions: oneOrMore }),
  issue_comment: withTypes(...edits),
  issues: withTypes(...issues),
  label: withTypes(...edits),
  merge_group: event({ types: types("checks_requested"), ...branches }),
  milestone: withTypes("created", "closed", "opened", "edited", "deleted"),
  page_build: nothing,
  project: withTypes("created", "closed", "reopened", "edited", "deleted"),
  project_card: withTypes("created", "moved", "converted", "edited", "deleted"),
  project_column: withTypes("created", "updated", "moved", "deleted"),
  public: nothing,
  pull_request: event({ types: types(...pullRequest), ...branches, ...paths }),
  pull_request_comment: withTypes(...edits),
  pull_request_review: withTypes("submitted", "edited", "dismissed"),
  pull_request_review_comment: withTypes(...edits),
  pull_request_target: event({ types: types(...pullRequest), ...branches, ...paths }),
  push: event({ ...branches, ...tags, ...paths }),
  registry_package: withTypes("published", "updated"),
  release: withTypes("published", "unpublished", ...edits, "prereleased", "released"),
  repository_dispatch: event({ types: oneOf(nonEmpty, nonEmptyList) }),
  schedule: sequence(mapping({ "cron!": nonEmpty, timezone: nonEmpty })),
  status: nothing,
  watch: withTypes("started"),
  workflow_call: workflowCall,
  // what stands beside inputs is ignored there, and not ours to refuse
  workflow_dispatch: oneOf(nothing, mapOf(any, { inputs: oneOf(nothing, mapOf(oneOf(nothing, dispatchInput))) })),
  workflow_run: event({ types: types("requested", "completed", "in_progress"), workflows: oneOrMore, ...branches }),
};

const eventName = among(...Object.keys(events));

export const on: Definition = oneOf(eventName, sequence(eventName), mapping(events));

/** A workflow that is only called needs no triggers that this version knows. */
export const onOfCalled: Definition = oneOf(string, sequence(any), mapOf(any, { workflow_call: workflowCall }));

export const eventNames: readonly string[] = Object.keys(events);
