// The gateway's HTTP. The visitor's key lives in this module's memory: no storage, no cookie, no address has it.

let key = "";

export function useKey(given) {
  key = given.trim();
}

export const hasKey = () => key !== "";

/** Relative to where the page lies, so that it works below a proxy's prefix. */
export const address = (path) => new URL(path.replace(/^\//, ""), document.baseURI);

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/**
 * The answer to a request, its head read.
 *
 * Throws Refused with the server's own words for any error status, and for no answer at all.
 */
export async function request(path, { token, headers = {}, ...options } = {}) {
  const bearer = token ?? key;
  const all = bearer === "" ? headers : { Authorization: `Bearer ${bearer}`, ...headers };
  let answer;
  try {
    answer = await fetch(address(path), { ...options, headers: all, redirect: "error", credentials: "omit" });
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    throw new Refused(0, "The gateway cannot be reached. Is it running, and is this page still on its address?");
  }
  if (!answer.ok) throw new Refused(answer.status, await reason(answer));
  return answer;
}

export async function json(path, options) {
  return (await request(path, options)).json();
}

/** Our errors, vLLM's, and those of streams, as the sentence in them. */
async function reason(answer) {
  const text = await answer.text().catch(() => "");
  let body = null;
  try {
    body = JSON.parse(text);
  } catch {
    // said below
  }
  const detail = body?.detail;
  const said = body?.error?.message ?? detail?.error?.message ?? (typeof detail === "string" ? detail : null) ?? body?.message;
  if (answer.status === 401) return "The gateway wants a key: type yours at the top of the page.";
  return `${said ?? (text.slice(0, 300) || "no reason given")} (status ${answer.status})`;
}

/** Server-Timing as milliseconds by name. */
export function serverTiming(answer) {
  const found = {};
  for (const part of (answer.headers.get("Server-Timing") ?? "").split(",")) {
    const match = /^\s*([\w-]+)\s*;.*?dur=([\d.]+)/.exec(part);
    if (match) found[match[1]] = Number(match[2]);
  }
  return found;
}
