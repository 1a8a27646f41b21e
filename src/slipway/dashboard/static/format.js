/** Words for times, counts and stages: the same ones that `slipway fleet` prints. */

/** The stages of a host and of a machine, in the order of a life, with what each is called. */
export const STAGES = /** @type {Record<string, string>} */ ({
  registered: "registered",
  free: "free",
  pending: "waits for a host",
  allocated: "taken",
  provisioning: "is made",
  reprovisioning: "gets its image",
  booting: "boots",
  node: "a Node",
  draining: "is drained",
  deleting: "is deleted",
  cleaning: "is cleaned",
  failed: "failed",
  unavailable: "unavailable",
});

/** What several of a stage are called. */
export const SEVERAL = /** @type {Record<string, string>} */ ({
  ...STAGES,
  pending: "wait for a host",
  provisioning: "are made",
  reprovisioning: "get their image",
  booting: "boot",
  node: "Nodes",
  draining: "are drained",
  deleting: "are deleted",
  cleaning: "are cleaned",
});

/** How far the server's clock is ahead of ours, in milliseconds. */
let ahead = 0;

/** @param {string} time the server's */
export function setClock(time) {
  ahead = Date.parse(time) - Date.now();
}

/** The server's time, in milliseconds. */
export const now = () => Date.now() + ahead;

/** @param {number} seconds @returns {string} as kubectl writes ages: two units at most */
export function duration(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 600) return whole % 60 ? `${Math.floor(whole / 60)} min ${whole % 60} s` : `${whole / 60} min`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min`;
  if (whole < 48 * 3600) {
    const minutes = Math.floor((whole % 3600) / 60);
    return minutes && whole < 10 * 3600 ? `${Math.floor(whole / 3600)} h ${minutes} min` : `${Math.floor(whole / 3600)} h`;
  }
  return `${Math.floor(whole / 86400)} d`;
}

/** @param {string | undefined} time @returns {string} */
export const ago = (time) => (time ? duration((now() - Date.parse(time)) / 1000) : "");

/** @param {string} time @returns {string} for people, in their own zone */
export const moment = (time) => new Date(time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });

const NUMBERS = new Intl.NumberFormat("en");
/** @param {number} count @returns {string} */
export const number = (count) => NUMBERS.format(count);

/** @param {number} count @param {string} one @param {string} [many] */
export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

const NATURAL = new Intl.Collator("en", { numeric: true });
/** Names with numbers in the order of the numbers. @param {string} a @param {string} b */
export const natural = (a, b) => NATURAL.compare(a, b);
