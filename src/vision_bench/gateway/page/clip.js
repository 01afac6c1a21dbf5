// A clip, its four fields, and where the time went.

import { analysisBody, validate } from "./analysis.js";
import { json, request, serverTiming } from "./api.js";
import { byId, isLeaving, make, milliseconds, showProblem } from "./dom.js";
import { chosenModel } from "./models.js";
import { hasSound } from "./mp4.js";
import { keepQuestion, now } from "./stamps.js";
import { drawStages } from "./waterfall.js";

const HEAD_BYTES = 32 * 1024 * 1024; // where an MP4 that is asked about has its tracks listed
const HEADER_ROUNDS_MS = 0.2; // Server-Timing has tenths: three of them miss by 0.15 at most

let clip = null;
let leaving = null;

export function prepareClip() {
  if (navigator.language.startsWith("ko")) byId("clip-language").value = "ko";
  const drop = byId("clip-drop");
  byId("clip-file").addEventListener("change", (event) => take(event.target.files[0]));
  for (const name of ["dragenter", "dragover"]) {
    drop.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.add("over");
    });
  }
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    take(event.dataTransfer.files[0]);
  });
  byId("clip-ask").addEventListener("click", ask);
  byId("clip-stop").addEventListener("click", () => leaving?.abort());
}

async function take(file) {
  if (!file) return;
  showProblem("clip-problem", null);
  clip = file;
  const video = byId("clip-video");
  if (video.src) URL.revokeObjectURL(video.src);
  video.src = URL.createObjectURL(file);
  video.hidden = false;
  const sound = byId("clip-sound");
  const heard = hasSound(await file.slice(0, HEAD_BYTES).arrayBuffer());
  sound.checked = heard === true;
  sound.disabled = heard === false;
  byId("clip-ask").disabled = false;
  const said = heard === null ? "no MP4: say whether it has sound" : heard ? "with sound" : "without sound";
  byId("clip-state").textContent = `${file.name}, ${(file.size / 1e6).toFixed(2)} MB, ${said}.`;
}

async function ask() {
  showProblem("clip-problem", null);
  byId("clip-answer").replaceChildren();
  byId("clip-stages").replaceChildren();
  leaving = new AbortController();
  waits(true);
  byId("clip-state").textContent = "Asking …";
  const record = { kind: "clip", item: clip.name, is_streamed: false, dec_ns: now() };
  try {
    if (chosenModel() === "") throw new Error("There is no model to ask yet; see Models above.");
    const question = await json("page/question", { signal: leaving.signal });
    const { answer, timing } = await send(record, question);
    const verdict = validate(answer, question.schema);
    record.val_ns = now();
    Object.assign(record, { outcome: "ok", is_valid: verdict.outcome === "ok", text: verdict.text });
    showVerdict(verdict);
    drawStages("clip-stages", "From the click to a checked answer", stages(record, timing));
    byId("clip-state").textContent = `${verdict.outcome === "ok" ? "All four fields are there" : "The answer did not pass"} after ${milliseconds((record.val_ns - record.dec_ns) / 1e6)}.`;
  } catch (problem) {
    record.outcome = isLeaving(problem) ? "client_left" : problem.status ? "http_error" : "failed";
    record.status ??= problem.status || null;
    byId("clip-state").textContent = isLeaving(problem) ? "Stopped; the call was closed." : "No answer.";
    if (!isLeaving(problem)) showProblem("clip-problem", problem);
  } finally {
    waits(false);
    keepQuestion(record);
  }
}

async function send(record, question) {
  const url = await dataUrl(clip);
  record.enc_ns = now();
  const fps = Number(byId("clip-fps").value) || 2;
  const listens = byId("clip-sound").checked;
  const asked = { model: chosenModel(), url, question, language: byId("clip-language").value, fps, listens };
  const body = new Blob([JSON.stringify(analysisBody(asked))]);
  record.request_bytes = body.size;
  record.ser_ns = now();
  const headers = { "Content-Type": "application/json" };
  record.hdr_ns = now();
  const answer = await request("chat", { method: "POST", body, headers, signal: leaving.signal });
  record.rsp_ns = now();
  record.status = answer.status;
  record.request_id = answer.headers.get("X-Request-Id");
  const bytes = await answer.arrayBuffer();
  record.end_ns = now();
  record.response_bytes = bytes.byteLength;
  const parsed = JSON.parse(new TextDecoder().decode(bytes));
  record.par_ns = now();
  record.model = parsed.model ?? null;
  record.finish_reason = parsed.choices?.[0]?.finish_reason ?? null;
  record.prompt_tokens = parsed.usage?.prompt_tokens ?? null;
  record.completion_tokens = parsed.usage?.completion_tokens ?? null;
  return { answer: parsed, timing: serverTiming(answer) };
}

/**
 * The browser's stages on its own clock; the gateway's are durations that it told. Two clocks are never subtracted:
 * what is left of the wait beside the gateway's total is the
 * way there and back, through the browser's own processes too.
 */
function stages(record, { queue = null, upstream = null, total = null }) {
  const between = (start, end) => (record[end] - record[start]) / 1e6;
  const waited = between("ser_ns", "rsp_ns");
  const positive = (ms) => (ms >= -HEADER_ROUNDS_MS ? Math.max(0, ms) : null);
  const own = total === null ? null : positive(total - (queue ?? 0) - (upstream ?? 0));
  return [
    { name: "read and encode the clip", ms: between("dec_ns", "enc_ns"), place: "browser" },
    { name: "write the body", ms: between("enc_ns", "ser_ns"), place: "browser" },
    { name: "network, and the browser's own work", ms: total === null ? null : positive(waited - total), place: "network" },
    { name: "gateway: the upload, and its own work", ms: own, place: "gateway" },
    { name: "gateway: wait for a permit", ms: queue, place: "gateway" },
    { name: "model", ms: upstream, place: "model" },
    { name: "read the answer", ms: between("rsp_ns", "end_ns"), place: "browser" },
    { name: "parse", ms: between("end_ns", "par_ns"), place: "browser" },
    { name: "check the four fields", ms: between("par_ns", "val_ns"), place: "browser" },
  ];
}

function showVerdict({ outcome, result, error, text }) {
  const rows = outcome === "ok" ? Object.entries(result) : [[outcome, error], ["what came", text]];
  byId("clip-answer").replaceChildren(...rows.flatMap(([name, said]) => [make("dt", {}, name), make("dd", {}, said)]));
}

function waits(isWaiting) {
  byId("clip-ask").disabled = isWaiting;
  byId("clip-stop").hidden = !isWaiting;
}

function dataUrl(file) {
  const named = file.type.startsWith("video/") ? file : file.slice(0, file.size, "video/mp4");
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(new Error(`The clip cannot be read: ${reader.error.message}`));
    reader.readAsDataURL(named);
  });
}
