// Elements of the page. Text becomes text: nothing here, or in any other file of the page, makes markup of it.

export const byId = (id) => document.getElementById(id);

export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

export const cell = (text, className = "") => make("td", { className }, String(text));

export function showProblem(id, problem) {
  const place = byId(id);
  place.hidden = problem === null;
  place.textContent = problem === null ? "" : typeof problem === "string" ? problem : problem.message;
}

/** "n/a" where nothing was measured: 0 would be a measurement. */
export function milliseconds(ms) {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return "n/a";
  return ms < 100 ? `${ms.toFixed(1)} ms` : `${Math.round(ms).toLocaleString("en")} ms`;
}

/** Named numbers: [name, text] pairs. */
export function showNumbers(id, numbers) {
  byId(id).replaceChildren(
    ...numbers.map(([name, text]) => make("div", {}, make("dt", {}, name), make("dd", {}, text))),
  );
}

export const isLeaving = (problem) => problem?.name === "AbortError";
