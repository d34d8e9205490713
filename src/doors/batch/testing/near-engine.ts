/**
 * For judging answers: requests of tasks run in this process, in a database each of one instance that stays open. That
 * is ten times as quick as engines are, and locks nothing down.
 */
import { mkdir, rm } from "node:fs/promises";
import type { DuckDBInstance } from "@duckdb/node-api";
import { EngineError, type EngineResult, type EngineWork, type RunsWork } from "#doors/batch/run/engines.ts";
import { failureOf, runStatements, shortened } from "#doors/batch/run/statements.ts";

export class NearEngine implements RunsWork {
  readonly #instance: DuckDBInstance;
  #requests = 0;

  private constructor(instance: DuckDBInstance) {
    this.#instance = instance;
  }

  static async open(): Promise<NearEngine> {
    const { DuckDBInstance } = await import("@duckdb/node-api");
    return new NearEngine(await DuckDBInstance.create(":memory:", { threads: "1" }));
  }

  async run(work: EngineWork): Promise<EngineResult> {
    this.#requests += 1;
    const own = `request_${this.#requests}`;
    const connection = await this.#instance.connect();
    await mkdir(work.spillFolder, { recursive: true });
    try {
      const unset = work.settings.map((sql) => sql.replace(/^set (\w+)=.*$/s, "reset $1"));
      await connection.run(
        ["set timezone='UTC'", ...work.settings, `attach ':memory:' as ${own}`, `use ${own}`].join("; "),
      );
      try {
        return { ...(await runStatements(connection, work, () => false)), cpuMs: 0 };
      } finally {
        await connection.run([...unset, "use memory", `detach ${own}`].join("; "));
      }
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      throw new EngineError(failureOf(message), shortened(message));
    } finally {
      connection.closeSync();
      await rm(work.spillFolder, { recursive: true, force: true });
    }
  }
}
