// What the page measured, as records of `vision-bench run`: in memory until somebody saves them.

import { byId, make } from "./dom.js";
import { runFolder } from "./run_folder.js";

const MOST = 1000;
const records = [];

/** The browser's monotonic clock, whole ns. It counts from the page's opening and no finer than the browser allows. */
export const now = () => Math.round(performance.now() * 1e6);

/** A question that is over, however it ended. */
export function keepQuestion(record) {
  if (records.length === MOST) records.shift();
  records.push({ ...record, stop_ns: now() });
  byId("stamps-save").disabled = false;
  byId("stamps-state").textContent = `${records.length} question${records.length === 1 ? "" : "s"}.`;
}

export function prepareStamps() {
  byId("stamps-save").addEventListener("click", () => {
    const name = `vision-bench-page-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}`;
    const link = make("a", { href: URL.createObjectURL(runFolder(name, records, new Date(performance.timeOrigin))), download: `${name}.tar` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  });
}
