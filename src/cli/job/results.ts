import { command, serverFlags } from "#door/command.ts";

const numberWords = (text: string | undefined, min: number): number | undefined | "wrong" => {
  if (text === undefined) return undefined;
  return /^\d{1,7}$/.test(text) && Number(text) >= min ? Number(text) : "wrong";
};

export const jobResults = command({
  name: "job results",
  about: "List the results of a stage: task by task, of one generation.",
  words: "<job> <stage>",
  positionalsMax: 2,
  takesRest: false,
  flags: {
    ...serverFlags,
    generation: { type: "string", value: "NUMBER", about: "of this generation (the newest)" },
    from: { type: "string", value: "NUMBER", about: "leave out so many tasks, the first ones" },
    limit: { type: "string", value: "NUMBER", about: "at most so many tasks (all)" },
  },
  examples: ["millrace job results j0-1 run", "millrace job results j0-1 run --from 5000 --limit 10 --json"],
  async run({ positionals: [job, stage], values }, world) {
    const [generation, from, limit] = [
      numberWords(values.generation, 1),
      numberWords(values.from, 0),
      numberWords(values.limit, 1),
    ];
    if (job === undefined || stage === undefined) {
      world.note("job results: name the job and the stage, for example: millrace job results j0-1 run");
      return 2;
    }
    if (generation === "wrong" || from === "wrong" || limit === "wrong") {
      world.note("job results: --generation, --from and --limit are whole numbers");
      return 2;
    }
    const { apiOf } = await import("#cli/api.ts");
    const { resultsOfStage } = await import("#api/jobs.ts");
    const api = apiOf(values, world.env, "list results");
    const lines = await api(resultsOfStage, { params: { job, stage }, query: { generation, from, limit } });
    for await (const line of lines)
      if (values.json) world.out(JSON.stringify(line));
      else world.out(line.kind === "stage" ? headOf(line) : textOf(line));
    return 0;
  },
});

type Head = { readonly stage: string; readonly phase: string; readonly generation: number; readonly tasks: number };

const headOf = ({ stage, phase, generation, tasks }: Head): string =>
  `${stage}: ${phase}, generation ${generation}, ${tasks} tasks`;

type Result = {
  readonly task: string;
  readonly key: string;
  readonly phase: string;
  readonly result?: string | undefined;
  readonly failure?: { readonly reason: string; readonly message: string } | undefined;
};

/** Without control characters: a result is whatever a task's runner recorded. */
function textOf({ task, key, phase, result, failure }: Result): string {
  const what = result ?? (failure ? `${failure.reason}: ${failure.message}` : "");
  return `${task}  ${key}  ${phase}  ${what}`.replace(/\p{C}+/gu, " ").trimEnd();
}
