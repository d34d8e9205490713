/** Which contexts and functions a key of a workflow may use (CI-32). */

export type FunctionShape = { readonly name: string; readonly argumentsMin: number; readonly argumentsMax: number };

export type Availability = {
  /** Equal names have equal content: it is part of the key under which parsed expressions are kept. */
  readonly name: string;
  readonly contexts: readonly string[];
  readonly functions: readonly FunctionShape[];
};

export function availability(contexts: readonly string[], functions: readonly FunctionShape[] = []): Availability {
  const names = [
    ...contexts,
    ...functions.map((shape) => `${shape.name}(${shape.argumentsMin}-${shape.argumentsMax})`),
  ];
  return { name: names.join(" "), contexts, functions };
}

const many = Number.MAX_SAFE_INTEGER;

export const hashFiles: FunctionShape = { name: "hashFiles", argumentsMin: 1, argumentsMax: 255 };

/** At the level of jobs, success and failure may name the jobs they look at. */
export const jobStatus: readonly FunctionShape[] = [
  { name: "always", argumentsMin: 0, argumentsMax: 0 },
  { name: "cancelled", argumentsMin: 0, argumentsMax: 0 },
  { name: "failure", argumentsMin: 0, argumentsMax: many },
  { name: "success", argumentsMin: 0, argumentsMax: many },
];

export const stepStatus: readonly FunctionShape[] = jobStatus.map((shape) => ({ ...shape, argumentsMax: 0 }));
