// Stages one after the other, as bars in a table: what a picture shows, a screen reader reads.

import { byId, make, milliseconds } from "./dom.js";

/**
 * @param {string} id where to draw
 * @param {string} caption what the bars are of
 * @param {{name: string, ms: number|null, place: string}[]} stages in order; a stage without ms takes no room
 */
export function drawStages(id, caption, stages) {
  const whole = stages.reduce((sum, stage) => sum + (stage.ms ?? 0), 0);
  let passed = 0;
  const rows = stages.map((stage) => {
    const bar = make("div", { className: `bar ${stage.place}` });
    const share = whole > 0 ? (stage.ms ?? 0) / whole : 0;
    bar.style.setProperty("--from", `${(100 * passed).toFixed(3)}%`);
    bar.style.setProperty("--share", `${(100 * share).toFixed(3)}%`);
    passed += share;
    const track = make("td", { className: "track" });
    if (stage.ms !== null) track.append(bar);
    return make(
      "tr", {},
      make("th", { scope: "row" }, stage.name),
      track,
      make("td", { className: "ms" }, stage.text ?? milliseconds(stage.ms)),
    );
  });
  const table = make("table", { className: "stages" }, make("caption", {}, caption), make("tbody", {}, ...rows));
  byId(id).replaceChildren(table);
}
