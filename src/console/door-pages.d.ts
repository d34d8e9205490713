/** Pages of doors: tools/console.ts makes this module from the list of doors. */
declare module "millrace:door-pages" {
  import type { ComponentType } from "preact";

  export const doorPages: readonly {
    readonly path: string;
    readonly title: string;
    readonly Page: ComponentType<{ readonly rest: string }>;
  }[];
}
