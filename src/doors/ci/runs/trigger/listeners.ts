/** Which repositories have workflows that run when others have run: only for those is the end of a run an event. */
import { z } from "zod";
import { recordsOf } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";
import type { Repository } from "#sources/book.ts";
import { compileOnce } from "#doors/ci/workflow/compile/compile-once.ts";
import type { SourceFile } from "#doors/ci/workflow/compile/file.ts";

const Listener = z.object({ repository: z.string() });

export class Listeners {
  readonly #kept;

  constructor(records: Records) {
    this.#kept = recordsOf(records, { kind: "ci.listener", schema: Listener });
  }

  /** `files` are those of the default branch. */
  async sync({ tenant, name }: Repository, files: readonly SourceFile[]): Promise<void> {
    const listens = files.some((file) => {
      if (!file.text.includes("workflow_run")) return false;
      const compiled = compileOnce(file);
      return compiled.ok && Object.hasOwn(compiled.workflow.on.events, "workflow_run");
    });
    if (listens) await this.#kept.create(tenant, name.toLowerCase(), { repository: name });
    else if (await this.#kept.read(tenant, name.toLowerCase())) await this.#kept.remove(tenant, name.toLowerCase());
  }

  async has(tenant: string, repository: string): Promise<boolean> {
    return (await this.#kept.read(tenant, repository.toLowerCase())) !== undefined;
  }
}
