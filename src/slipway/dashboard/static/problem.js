/** What is not well, and the explanation beside it: what it waits for, along the chain of objects, and what to do. */

import { fill, h } from "./dom.js";
import { badge, openLink, since } from "./parts.js";
import { ask } from "./session.js";

/** The row that shows an object. @type {Record<string, string>} */
const SHOWN_AS = {
  Cluster: "cluster",
  Machine: "machine",
  MachineInventory: "host",
  MachineInventoryPool: "pool",
};

/** @param {{kind: string, namespace: string, name: string}} object */
export const keyOf = (object) => (SHOWN_AS[object.kind] ? `${SHOWN_AS[object.kind]}/${object.namespace}/${object.name}` : "");

/**
 * @param {any} problem
 * @param {{explained?: boolean, where?: boolean}} [how] whether the explanation is open, and whether it says where it is
 */
export function problemCard(problem, { explained = false, where = true } = {}) {
  const { kind, name } = problem.object;
  const key = problem.rows?.find((/** @type {string} */ each) => !each.startsWith("cluster/")) ?? keyOf(problem.object);
  return h(
    "article",
    { class: `problem ${problem.lasting ? "lasting" : "waiting"}` },
    h(
      "header",
      null,
      h("h3", null, where && key ? openLink(key, `${kind} ${name}`) : `${kind} ${name}`),
      badge(problem.lasting ? "bad" : "busy", problem.lasting ? "stays until somebody acts" : "is waited for"),
    ),
    h("p", { class: "why" }, h("code", null, [problem.condition, problem.reason].filter(Boolean).join(": ")), problem.since ? [" for ", since(problem.since)] : ""),
    problem.message ? h("p", { class: "message" }, problem.message) : null,
    problem.toDo ? h("p", { class: "to-do" }, h("strong", null, "What to do: "), problem.toDo) : null,
    explanation(problem.object, explained),
  );
}

/** @param {{kind: string, namespace: string, name: string}} object @param {boolean} open */
function explanation(object, open) {
  const place = h("div", { class: "explanation" });
  const details = h("details", { "data-name": `${object.kind}/${object.name}`, ontoggle: () => /** @type {any} */ (details).open && explain(object, place) }, h("summary", null, "Explain"), place);
  if (open) details.setAttribute("open", "");
  return details;
}

/** @param {{kind: string, namespace: string, name: string}} object @param {HTMLElement} place */
async function explain(object, place) {
  if (place.childElementCount) return;
  fill(place, h("p", { class: "quiet" }, "Looking…"));
  try {
    const found = await (await ask(`/api/explain?${new URLSearchParams(object)}`)).json();
    const sentences = (found.sentences ?? []).map((/** @type {string} */ text) => h("p", null, text));
    const toDo = (found.toDo ?? []).map((/** @type {string} */ text) => h("li", null, text));
    fill(
      place,
      sentences.length ? sentences : h("p", { class: "quiet" }, "The objects say no more than this."),
      found.chain?.length > 1 ? h("ol", { class: "chain", "aria-label": "From there to its cause" }, found.chain.map(step)) : null,
      toDo.length ? [h("h4", null, "What to do"), h("ul", { class: "to-dos" }, toDo)] : null,
    );
  } catch (error) {
    fill(place, h("p", { class: "quiet" }, `There is no explanation: ${/** @type {Error} */ (error).message}.`));
  }
}

/** @param {{kind: string, namespace: string, name: string}} object */
function step(object) {
  const key = keyOf(object);
  return h("li", null, key ? openLink(key, `${object.kind} ${object.name}`) : `${object.kind} ${object.name}`);
}
