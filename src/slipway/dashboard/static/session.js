/**
 * Who looks: a token, kept for this tab and this origin alone, and sent in a header of every request.
 * A cookie would be sent to every port of the host, and by itself; this one never is.
 */

const KEY = "slipway.token";

export const token = () => sessionStorage.getItem(KEY) ?? "";
/** @param {string} value */
export const keep = (value) => sessionStorage.setItem(KEY, value);
export const forget = () => sessionStorage.removeItem(KEY);

export class Refused extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/**
 * Ask the server; what it refuses is thrown with its sentence.
 * @param {string} path
 * @param {{headers?: Record<string, string>, signal?: AbortSignal}} [options]
 * @returns {Promise<Response>}
 */
export async function ask(path, options = {}) {
  const headers = { ...options.headers, Authorization: `Bearer ${token()}` };
  const response = await fetch(path, { headers, signal: options.signal, cache: "no-store", credentials: "omit", redirect: "error" });
  if (response.ok) return response;
  const said = await response.json().catch(() => ({}));
  throw new Refused(response.status, said.error ?? `the server answered ${response.status}`);
}
