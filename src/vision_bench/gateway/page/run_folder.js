// Questions as the run folder that `vision-bench report` reads: manifest.json, steps.jsonl and records.jsonl, in a tar.

import { tar } from "./tar.js";

const STEPS = [
  { item: "clip", name: "clips, by hand" },
  { item: "camera", name: "camera, by hand" },
];
const LOAD = { round: 0, rate: null, concurrency: 1, arrivals: null, max_requests: null, cameras: null, load: "closed" };
const UNKNOWN = { offered_rate: null, due: null, schedule_sha256: null };

/**
 * @param {string} name of the folder
 * @param {object[]} questions as stamps.js keeps them, oldest first
 * @param {Date} openedAt when the clock of the stamps was 0
 * @returns {Blob}
 */
export function runFolder(name, questions, openedAt) {
  const steps = STEPS.map((step, plan) => ({ ...step, plan, of: questions.filter((each) => each.kind === step.item) }))
    .filter((step) => step.of.length > 0)
    .map((step, plan) => ({ ...step, plan }));
  const records = steps.flatMap((step) => step.of.map((each, index) => record(each, step.plan + 1, index)));
  records.forEach((each, ordinal) => Object.assign(each, { ordinal }));
  return tar(name, {
    "manifest.json": JSON.stringify(manifest(name, questions, steps, openedAt), null, 1) + "\n",
    "steps.jsonl": lines(steps.flatMap(stepLines)),
    "records.jsonl": lines(records),
  });
}

const lines = (objects) => objects.map((each) => JSON.stringify(each) + "\n").join("");

/** A person's questions follow one another: each was due when it was asked. */
function record({ kind, ...question }, step, index) {
  return { step, index, due_ns: question.dec_ns, dsp_ns: question.dec_ns, ...question };
}

const facts = (step) => ({ plan: step.plan, name: step.name, window_ns: null, ...LOAD, ...UNKNOWN });

function stepLines(step) {
  const start = step.of[0].dec_ns;
  const stop = Math.max(...step.of.map((each) => each.stop_ns));
  const busy = step.of.reduce((sum, each) => sum + each.stop_ns - each.dec_ns, 0);
  const begin = { step: step.plan + 1, event: "begin", ...facts(step), begin_ns: start };
  const end = { start_ns: start, window_ns: stop - start, stop_ns: stop, is_complete: true, due: step.of.length };
  return [begin, { step: step.plan + 1, event: "end", ...end, mean_in_flight: busy / (stop - start) }];
}

function manifest(name, questions, steps, openedAt) {
  const model = questions.find((each) => each.model)?.model ?? null;
  return {
    schema: 1,
    kind: "chat",
    run_id: name,
    started_at: openedAt.toISOString().replace(/\.\d+Z$/, "Z"),
    workload: {
      name: "page",
      fingerprint: "by hand",
      values: { name: "page", kind: "chat", model, state: null, max_tokens: null, max_completion_tokens: null, extra: {} },
      files: {},
      bodies: [],
      url: document.baseURI,
      wire: "completions",
      batch_size: null,
      streams: true,
      slo: null,
      items: [...new Set(questions.map((each) => each.item))],
      labels: null,
    },
    labels: { model, media: "by hand", encode: "inside", region: null },
    load: { by: "a person at the page" },
    plan: steps.map(facts),
    environment: { system: navigator.userAgent, machine: "a browser", processors: navigator.hardwareConcurrency ?? null },
    server: {},
  };
}
