/** `container:` and `services:` of a job as values. Pure. */
import type { Scope } from "#doors/ci/workflow/expression/evaluate.ts";
import { Dictionary, isArray, textOf, type Value } from "#doors/ci/workflow/expression/value.ts";
import { templateValue } from "#doors/ci/workflow/plan/template.ts";
import type { Node } from "#doors/ci/workflow/yaml/node.ts";
import { ContainerFault, type ContainerWanted } from "#doors/ci/run/containers.ts";

const servicesMax = 20;

/** Undefined for an empty image: the job then runs without a container. */
export function containerWanted(node: Node, scope: Scope): ContainerWanted | undefined {
  return wantedOf(templateValue(node, scope));
}

/** Services whose image is empty are left out (CI-66). */
export function servicesWanted(node: Node, scope: Scope): ReadonlyMap<string, ContainerWanted> {
  const value = templateValue(node, scope);
  if (!(value instanceof Dictionary)) return new Map();
  const all = [...value.entries()].flatMap(([id, one]) => {
    const wanted = wantedOf(one);
    return wanted ? [[id, wanted] as const] : [];
  });
  if (all.length > servicesMax) throw new ContainerFault(`a job may have ${servicesMax} services, not ${all.length}`);
  for (const [id] of all)
    if (!/^[A-Za-z_][A-Za-z0-9_-]{0,62}$/.test(id)) throw new ContainerFault(`'${id}' cannot be a service's name`);
  return new Map(all);
}

function wantedOf(value: Value): ContainerWanted | undefined {
  const given = value instanceof Dictionary ? value : new Dictionary([["image", value]]);
  const text = (name: string): string => textOf(given.get(name) ?? null).trim();
  const image = text("image").replace(/^docker:\/\//, "");
  if (image === "") return undefined;
  if (/[\s\p{Cc}]/u.test(image) || image.startsWith("-")) throw new ContainerFault(`'${image}' is no name of an image`);
  const credentials = given.get("credentials");
  return {
    image,
    env: textsIn(given.get("env")),
    ports: listIn(given.get("ports")),
    volumes: listIn(given.get("volumes")),
    options: text("options"),
    ...(credentials instanceof Dictionary && {
      credentials: {
        username: textOf(credentials.get("username") ?? null),
        password: textOf(credentials.get("password") ?? null),
      },
    }),
    ...(text("entrypoint") !== "" && { entrypoint: text("entrypoint") }),
    ...(text("command") !== "" && { command: text("command") }),
  };
}

const listIn = (value: Value | undefined): readonly string[] =>
  value !== undefined && isArray(value) ? value.map((item) => textOf(item)) : [];

const textsIn = (value: Value | undefined): ReadonlyMap<string, string> =>
  new Map(value instanceof Dictionary ? [...value.entries()].map(([name, item]) => [name, textOf(item)]) : []);
