// The gateway's state, asked every two seconds while somebody looks.

import { json } from "./api.js";
import { byId, cell, make, showProblem } from "./dom.js";

const EVERY_MS = 2000;

export const chosenModel = () => byId("model").value;

/** Calls `heard` with each state. Asking it costs no request of a key's allowance. */
export function watchState(heard) {
  let timer = 0;
  let latest = 0;
  async function ask() {
    clearTimeout(timer);
    const number = ++latest;
    if (!document.hidden) {
      try {
        const state = await json("page/state");
        if (number !== latest) return;
        showProblem("gateway-problem", null);
        showState(state);
        heard(state);
      } catch (problem) {
        if (number !== latest) return;
        showProblem("gateway-problem", problem);
      }
    }
    timer = setTimeout(ask, EVERY_MS);
  }
  document.addEventListener("visibilitychange", () => document.hidden || ask());
  ask();
  return ask;
}

function showState(state) {
  const models = state.models ?? [];
  byId("waiting").textContent = state.waiting === null ? "" : `${state.waiting} waiting for a permit`;
  byId("model-rows").replaceChildren(...(models.length > 0 ? models.map(row) : [emptyRow(state)]));
  showChoice(models.map((model) => model.id));
  byId("server-problems").replaceChildren(
    ...(state.servers ?? [])
      .filter((server) => server.last_error !== null)
      .map((server) => make("li", {}, `${server.address}: ${server.last_error}`)),
  );
}

function row(model) {
  const state = cell(model.state, model.state);
  return make("tr", {}, cell(model.id), state, cell(model.kind), cell(model.servers), cell(`${model.in_use} of ${model.permits}`));
}

function emptyRow(state) {
  const why = state.is_known ? "No server lists a model." : "Shown to visitors with a key.";
  return make("tr", {}, make("td", { colSpan: 5, className: "soft" }, why));
}

function showChoice(names) {
  const select = byId("model");
  const shown = [...select.options].map((option) => option.value);
  if (names.length === 0 || names.join("\n") === shown.join("\n")) return; // a model that goes for a moment stays chosen
  const chosen = select.value;
  select.replaceChildren(...names.map((name) => new Option(name, name)));
  select.value = names.includes(chosen) ? chosen : names[0];
  select.disabled = false;
}
