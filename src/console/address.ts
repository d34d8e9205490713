/** The page's address as state. Links are ordinary links; a click on one changes the page without a reload. */
import { signal } from "@preact/signals";

export const address = signal(location.pathname + location.search);

export function go(to: string): void {
  history.pushState(undefined, "", to);
  address.value = to;
}

export function followLinks(): void {
  addEventListener("popstate", () => (address.value = location.pathname + location.search));
  addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (!link || link.target !== "" || link.origin !== location.origin || !isPage(link.pathname)) return;
    event.preventDefault();
    go(link.pathname + link.search);
  });
}

const isPage = (path: string): boolean => path === "/" || path.startsWith("/console/");
