import type { Clock } from "#base/clock.ts";
import type { Journal } from "#journal/journal.ts";

const everyMs = 10_000;

/**
 * Logs a change of the guarantees of the journal's store: for example, that commits no longer wait for a standby, after
 * a reload of the database's settings or a fail-over.
 */
export function watchJournal(
  journal: Pick<Journal, "describe">,
  { clock, log }: { readonly clock: Clock; readonly log: (line: string) => void },
): Disposable {
  let known: ReadonlySet<string> | undefined;
  let cancel = (): void => {};
  let stopped = false;

  async function look(): Promise<void> {
    // If the store cannot be asked, other parts report that.
    const notes = await journal.describe().then(
      (described) => described.notes,
      () => undefined,
    );
    if (stopped) return;
    if (notes && known) for (const note of notes) if (!known.has(note)) log(`the journal's store has changed: ${note}`);
    if (notes) known = new Set(notes);
    cancel = clock.after(everyMs, () => void look());
  }

  void look();
  return {
    [Symbol.dispose]() {
      stopped = true;
      cancel();
    },
  };
}
