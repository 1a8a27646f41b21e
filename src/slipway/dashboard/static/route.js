/** Where somebody is, and what they filtered by: all of it is in the URL, so a link shows another the same. */

/** @typedef {Record<string, string>} Route */

/** @returns {Route} */
export function route() {
  return Object.fromEntries(new URLSearchParams(location.search));
}

/** @param {Route} wanted @returns {string} */
export function href(wanted) {
  const kept = Object.entries(wanted).filter(([, value]) => value);
  return kept.length ? `/?${new URLSearchParams(kept)}` : "/";
}

/** @type {(() => void)[]} */
const listeners = [];
/** @param {() => void} listener */
export const onRoute = (listener) => listeners.push(listener);

/** Go somewhere; the way back leads here. @param {Route} wanted */
export function go(wanted) {
  history.pushState(null, "", href(wanted));
  for (const each of listeners) each();
}

/** Change a part of where we are; typing into a filter is not a step of its own. @param {Route} changes */
export function adjust(changes) {
  history.replaceState(null, "", href({ ...route(), ...changes }));
  for (const each of listeners) each();
}

/** Let links within the page be followed without loading it anew. */
export function followLinks() {
  addEventListener("popstate", () => listeners.forEach((each) => each()));
  document.addEventListener("click", (event) => {
    const link = /** @type {HTMLAnchorElement | null} */ (/** @type {Element} */ (event.target).closest?.("a[data-link]"));
    if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    go(Object.fromEntries(new URL(link.href).searchParams));
  });
}
