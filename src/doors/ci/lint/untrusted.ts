/** Parts of the github context whose text strangers can choose (CI-33). */

const untrusted: readonly RegExp[] = [
  /^github\.head_ref$/,
  /^github\.event\.(issue|pull_request|discussion)\.(title|body)$/,
  /^github\.event\.(comment|review|review_comment|discussion_comment)\.body$/,
  /^github\.event\.pull_request\.head\.(ref|label)$/,
  /^github\.event\.pull_request\.head\.repo\.(default_branch|description|homepage)$/,
  /^github\.event\.(commits\.[^.]+|head_commit)\.(message|author\.(email|name))$/,
  /^github\.event\.pages\.[^.]+\.page_name$/,
  /^github\.event\.workflow_run\.(head_branch|display_title|head_repository\.description)$/,
  /^github\.event\.workflow_run\.head_commit\.(message|author\.(email|name))$/,
  /^github\.event\.merge_group\.head_commit\.message$/,
];

/** The whole of the event, or of one of the objects above, has those texts in it. */
const containers: ReadonlySet<string> = new Set([
  "github.event",
  "github.event.issue",
  "github.event.pull_request",
  "github.event.comment",
  "github.event.review",
  "github.event.discussion",
  "github.event.head_commit",
  "github.event.commits",
  "github.event.workflow_run",
]);

export const isUntrusted = (path: string): boolean => untrusted.some((pattern) => pattern.test(path));

/** Inside toJSON and the like. */
export const holdsUntrusted = (path: string): boolean => isUntrusted(path) || containers.has(path);
