import { forbiddenFrom, isPure, pureRoomGlobals, roomNames } from "./rooms.ts";

type Pattern = { readonly regex: string; readonly message: string };

// Trap: an override REPLACES a rule's options from above, it does not add to them. So every override
// that touches no-restricted-imports must carry the complete list, hence these two constants.
const noClimbing: Pattern = {
  regex: "^\\.\\./",
  message: 'Inside a room write "./x.ts", across rooms "#room/x.ts": an import says its direction aloud.',
};
const noTestSupport: Pattern = {
  regex: "^#(testing|e2e|bench)/|/testing/",
  message: "Only tests may use what is in testing/, e2e/ and bench/.",
};

/** The value of .oxlintrc.json. */
export function lintConfig(): object {
  return {
    $schema: "./node_modules/oxlint/configuration_schema.json",
    options: { typeAware: true, reportUnusedDisableDirectives: "error" },
    plugins: ["typescript", "unicorn", "oxc", "import"],
    categories: { correctness: "error" },
    rules: { ...plainRules, ...typedRules, ...restrictImports([noClimbing]) },
    overrides: [...roomNames.flatMap((room) => overridesFor(room)), conformanceSuites],
    ignorePatterns: ["node_modules/**", "src/wire/generated/**"],
  };
}

const plainRules = {
  "eslint/eqeqeq": "error",
  "eslint/no-var": "error",
  "eslint/prefer-const": "error",
  "eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_", varsIgnorePattern: "^_" }],
  "eslint/max-lines": ["warn", { max: 300, skipBlankLines: true, skipComments: true }],
  "eslint/max-lines-per-function": ["warn", { max: 60, skipBlankLines: true, skipComments: true }],
  "import/no-cycle": "error",
  "import/no-default-export": "error",
  "oxc/no-barrel-file": ["error", { threshold: 0 }],
  "typescript/no-explicit-any": "error",
  "typescript/consistent-type-imports": "error",
};

const typedRules = {
  "typescript/no-floating-promises": [
    "error",
    {
      // node:test's own functions return promises that only matter to a test that awaits its subtests.
      allowForKnownSafeCalls: [
        {
          from: "package",
          package: "node:test",
          name: ["test", "it", "describe", "suite", "before", "after", "beforeEach", "afterEach"],
        },
      ],
    },
  ],
  "typescript/no-misused-promises": ["error", { checksVoidReturn: { arguments: true, attributes: true } }],
  "typescript/switch-exhaustiveness-check": ["error", { considerDefaultExhaustiveForUnions: true }],
  "typescript/await-thenable": "error",
  "typescript/only-throw-error": "error",
  "typescript/prefer-promise-reject-errors": "error",
  "typescript/return-await": ["error", "error-handling-correctness-only"],
  "typescript/no-unnecessary-type-assertion": "error",
};

// A conformance suite for all implementations of a port is one function full of tests, as are tests of the whole.
const conformanceSuites = {
  files: ["src/**/exercise*.ts", "src/**/*-exercise.ts", "{bin,e2e,testing,tools}/**/*.test.ts"],
  rules: { "eslint/max-lines": "off", "eslint/max-lines-per-function": "off" },
};

function overridesFor(room: string): readonly object[] {
  const forbidden = forbiddenFrom(room);
  // Look-ahead ("anything but kernel") is silently ignored by oxlint, so the list is positive.
  const directions: readonly Pattern[] = [
    noClimbing,
    ...(forbidden.length === 0
      ? []
      : [{ regex: `^#(${forbidden.join("|")})/`, message: `${room} may not import that room: see tools/rooms.ts.` }]),
  ];
  const purity: readonly Pattern[] = isPure(room)
    ? [{ regex: "^node:", message: `${room} is pure: no node: modules.` }]
    : [];
  const whole = `src/${room}/**`;
  return [
    {
      files: [whole],
      rules: {
        // the simulation is a test of all rooms
        ...restrictImports([...directions, ...purity, ...(room === "sim" ? [] : [noTestSupport])]),
        ...(isPure(room) ? restrictGlobals(room) : {}),
      },
    },
    {
      // Tests follow the same directions; they may use node: (its test runner, at least) and testing/.
      files: [`${whole}/*.test.ts`, `${whole}/testing/**`],
      rules: {
        ...restrictImports(directions),
        "eslint/max-lines": "off",
        "eslint/max-lines-per-function": "off",
        ...(isPure(room) ? { "eslint/no-restricted-globals": "off", "eslint/no-restricted-properties": "off" } : {}),
      },
    },
  ];
}

function restrictImports(patterns: readonly Pattern[]): object {
  return { "eslint/no-restricted-imports": ["error", { patterns }] };
}

function restrictGlobals(room: string): object {
  const message = `${room} is pure: time, chance and I/O come in as arguments.`;
  return {
    "eslint/no-restricted-globals": ["error", ...pureRoomGlobals.map((name) => ({ name, message }))],
    "eslint/no-restricted-properties": [
      "error",
      { object: "Math", property: "random", message },
      ...pureRoomGlobals.map((property) => ({ object: "globalThis", property, message })),
    ],
  };
}
