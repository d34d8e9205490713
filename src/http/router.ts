/**
 * From a method and a path to the route that serves it. A tree of path segments: fixed text wins over a hole, and a
 * hole over a rest, so the order of the table does not matter.
 */
import type { Method } from "./endpoint.ts";
import { splitPath, type PathPattern } from "./path.ts";

type Routed = { readonly method: Method; readonly pattern: PathPattern; readonly name: string };

export type Found<R> =
  | { readonly kind: "route"; readonly route: R; readonly params: Readonly<Record<string, string>> }
  /** The path exists, with other methods. */
  | { readonly kind: "method"; readonly allow: readonly Method[] }
  | { readonly kind: "none" };

type TreeNode<R> = {
  readonly texts: Map<string, TreeNode<R>>;
  hole: TreeNode<R> | undefined;
  rest: Map<Method, R> | undefined;
  readonly here: Map<Method, R>;
};

const newNode = <R>(): TreeNode<R> => ({ texts: new Map(), hole: undefined, rest: undefined, here: new Map() });

export class Router<R extends Routed> {
  readonly #root: TreeNode<R> = newNode();

  constructor(routes: Iterable<R>) {
    for (const route of routes) this.#add(route);
  }

  #add(route: R): void {
    let node = this.#root;
    for (const segment of route.pattern.segments) {
      if (segment.kind === "rest") {
        this.#put((node.rest ??= new Map()), route);
        return;
      }
      if (segment.kind === "hole") {
        node = node.hole ??= newNode();
        continue;
      }
      let next = node.texts.get(segment.text);
      if (!next) node.texts.set(segment.text, (next = newNode()));
      node = next;
    }
    this.#put(node.here, route);
  }

  #put(methods: Map<Method, R>, route: R): void {
    const before = methods.get(route.method);
    if (before) throw new Error(`two routes serve the same address: ${before.name} and ${route.name}`);
    methods.set(route.method, route);
  }

  /** HEAD is served by the GET route; the caller drops the body. */
  find(method: string, pathname: string): Found<R> {
    const parts = splitPath(pathname);
    if (!parts) return { kind: "none" };
    const routeMethod = method === "HEAD" ? "GET" : method;
    const allow = new Set<Method>();
    for (const { methods, values } of candidates(this.#root, parts, 0, [])) {
      const route = methods.get(routeMethod as Method);
      if (route) return { kind: "route", route, params: named(route.pattern, values) };
      for (const other of methods.keys()) allow.add(other);
    }
    return allow.size > 0 ? { kind: "method", allow: [...allow] } : { kind: "none" };
  }
}

/** What fits the path, most specific first. The depth is bounded by the deepest route, not by the request. */
function* candidates<R>(
  node: TreeNode<R>,
  parts: readonly string[],
  at: number,
  values: readonly string[],
): Generator<{ readonly methods: ReadonlyMap<Method, R>; readonly values: readonly string[] }> {
  const part = parts[at];
  if (part === undefined) {
    if (node.here.size > 0) yield { methods: node.here, values };
    return;
  }
  const text = node.texts.get(part);
  if (text) yield* candidates(text, parts, at + 1, values);
  if (node.hole && part !== "") yield* candidates(node.hole, parts, at + 1, [...values, part]);
  const rest = parts.slice(at).join("/");
  if (node.rest && rest !== "") yield { methods: node.rest, values: [...values, rest] };
}

const named = ({ names }: PathPattern, values: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(names.map((name, at) => [name, values[at] ?? ""]));
