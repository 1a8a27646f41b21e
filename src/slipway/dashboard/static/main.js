/** The page: who looks signs in, the server tells, and the view that the URL names is drawn. */

import { ClusterView } from "./cluster.js";
import { Detail } from "./detail.js";
import { fill, h, say } from "./dom.js";
import { FleetView } from "./fleet.js";
import { number, setClock } from "./format.js";
import { ListView, ProblemsView } from "./lists.js";
import { tick } from "./parts.js";
import { adjust, followLinks, go, href, onRoute, route } from "./route.js";
import { forget, keep, token } from "./session.js";
import { Store } from "./store.js";
import { follow } from "./stream.js";

/** @typedef {{element: HTMLElement, title: string, update: (store: Store) => void, mount?: () => void, unmount?: () => void}} View */

const TABS = /** @type {[string, string][]} */ ([["", "Fleet"], ["hosts", "Hosts"], ["machines", "Machines"], ["problems", "Problems"]]);
const $ = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));

let store = new Store();
/** @type {View | null} */
let view = null;
let viewName = "";
/** @type {AbortController | null} */
let following = null;
const detail = new Detail($("detail"), close);

/** @param {import("./store.js").Row} row */
const open = (row) => go({ ...route(), open: row.key });

function close() {
  const before = route().open;
  adjust({ open: "" });
  const table = /** @type {any} */ (view)?.table;
  if (table?.activeKey === before) table.focus();
  else /** @type {HTMLElement | null} */ (document.querySelector(`[data-focus="${CSS.escape(`open ${before}`)}"]`) ?? $("main")).focus();
}

/** @param {import("./route.js").Route} at @returns {View} */
function made(at) {
  if (at.view === "hosts" || at.view === "machines") return new ListView(at.view, open);
  if (at.view === "problems") return new ProblemsView();
  if (at.view === "cluster") return new ClusterView(at.namespace ?? "", at.name ?? "", open);
  return new FleetView();
}

function draw() {
  if (!following) return;
  const at = route();
  const name = at.view === "cluster" ? `cluster/${at.namespace}/${at.name}` : at.view ?? "";
  if (!view || name !== viewName) {
    const first = !view;
    view?.unmount?.();
    view = made(at);
    viewName = name;
    fill($("main"), view.element);
    scrollTo(0, 0);
    if (!first) {
      $("main").focus({ preventScroll: true });
      say(view.title);
    }
    view.update(store);
    view.mount?.();
  } else {
    view.update(store);
  }
  detail.update(store, at.open ?? "");
  drawComing();
  const problems = store.problems().filter((problem) => problem.lasting).length;
  document.title = `${problems ? `(${problems}) ` : ""}${view.title} · Slipway`;
  drawTabs(at.view ?? "", problems);
}

/** How much of everything is here, until it is. */
function drawComing() {
  $("main").setAttribute("aria-busy", String(!store.complete));
  $("coming").hidden = store.complete;
  const words = store.expected ? `${number(store.rows.size)} of ${number(store.expected)}` : "Fetching the fleet…";
  if (!store.complete && $("coming").textContent !== words) $("coming").textContent = words;
}

/** @param {string} current @param {number} problems */
function drawTabs(current, problems) {
  const state = `${current}/${problems}`;
  const tabs = $("tabs");
  if (tabs.dataset.state === state) return;
  tabs.dataset.state = state;
  const focused = document.activeElement?.getAttribute("data-tab");
  fill(
    tabs,
    TABS.map(([name, title]) =>
      h(
        "a",
        { href: href({ view: name }), "data-link": true, "data-tab": name, "aria-current": name === current || (name === "" && current === "cluster") ? "page" : null },
        title,
        name === "problems" && problems ? h("span", { class: "bubble" }, number(problems)) : null,
      ),
    ),
  );
  if (focused !== null && focused !== undefined) /** @type {HTMLElement | null} */ (tabs.querySelector(`[data-tab="${focused}"]`))?.focus();
}

/** @param {"live" | "lost" | "new"} state @param {string} why */
function tell(state, why) {
  const words = { live: "Live", lost: "Not live", new: "Connecting" }[state];
  const live = $("live");
  live.dataset.state = state;
  live.title = why || (state === "live" ? `Everything is as it is now, for ${store.user}` : "");
  if (live.textContent !== words) live.textContent = words;
  document.body.classList.toggle("stale", state === "lost");
}

function begin() {
  following?.abort();
  following = new AbortController();
  store = new Store();
  store.draw = draw;
  for (const id of ["tabs", "live", "leave"]) $(id).hidden = false;
  tell("new", "");
  draw();
  const namespace = route().namespace;
  const path = namespace ? `/api/stream?${new URLSearchParams({ namespace })}` : "/api/stream";
  follow(
    path,
    {
      event: (event) => {
        if (event.name === "seen") setClock(event.data.time);
        store.take(event);
      },
      state: tell,
      refused: (error) => signIn(error.message),
    },
    following.signal,
  );
}

/** @param {string} why */
function signIn(why) {
  following?.abort();
  following = null;
  forget();
  view?.unmount?.();
  view = null;
  detail.update(store, "");
  $("main").removeAttribute("aria-busy");
  for (const id of ["tabs", "live", "leave", "coming"]) $(id).hidden = true;
  document.body.classList.remove("stale");
  document.title = "Sign in · Slipway";
  const field = /** @type {HTMLInputElement} */ (
    h("input", { type: "password", id: "token", name: "token", required: true, autocomplete: "off", spellcheck: "false", "aria-describedby": "token-help", "aria-invalid": why ? "true" : null })
  );
  const form = h(
    "form",
    {
      class: "card sign-in",
      onsubmit: (/** @type {Event} */ event) => {
        event.preventDefault();
        keep(field.value.trim());
        begin();
      },
    },
    h("h1", null, "Sign in"),
    h("p", { class: "quiet", id: "token-help" }, "With a bearer token of the management cluster. You see what its owner may list there, and can change nothing."),
    why ? h("p", { class: "error", role: "alert" }, why) : null,
    h("label", null, h("span", null, "Token"), field),
    h("button", { type: "submit", class: "primary" }, "Sign in"),
    h("details", null, h("summary", null, "Where do I get one?"), h("pre", null, h("code", null, "kubectl -n NAMESPACE create token SERVICEACCOUNT"))),
  );
  fill($("main"), form);
  field.focus();
}

/** A link may bring a token behind its hash, which no browser sends; it is taken off the URL at once. */
function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!given) return;
  if (!token()) keep(given);
  history.replaceState(null, "", location.pathname + location.search);
}

followLinks();
onRoute(draw);
setInterval(tick, 1000);
$("leave").addEventListener("click", () => signIn(""));
document.addEventListener("keydown", (event) => {
  const typing = /** @type {Element} */ (event.target).matches?.("input, select, textarea");
  if (event.key === "/" && !typing && document.getElementById("q")) {
    event.preventDefault();
    $("q").focus();
  }
});
addEventListener("hashchange", () => {
  takeToken();
  if (token() && !following) begin();
});
takeToken();
if (token()) begin();
else signIn("");
