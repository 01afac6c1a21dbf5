// Questions about the camera's stream: tokens as they come, the frames that were used, where the time went.

import { json, request } from "./api.js";
import { byId, isLeaving, make, milliseconds, showNumbers, showProblem } from "./dom.js";
import { chosenModel } from "./models.js";
import { events } from "./sse.js";
import { keepQuestion, now } from "./stamps.js";
import { drawStages } from "./waterfall.js";

const SHOWN_FRAMES = 12;
const MODEL_STAGES = ["first_token", "final_token"]; // on the gateway's clock, and the model's work
const PLACES = { publisher: "network", between: "network", server: "gateway", upstream: "model", client: "browser" };

let leaving = null;
let pictures = [];

/** `streamId` gives the stream that is asked about, or null. */
export function prepareQuestions(streamId) {
  byId("ask-form").addEventListener("submit", (event) => {
    event.preventDefault();
    ask(streamId());
  });
  byId("ask-stop").addEventListener("click", () => leaving?.abort());
}

export function askCanBegin(can) {
  byId("ask-button").disabled = !can;
  if (!can) leaving?.abort();
}

async function ask(streamId) {
  clear();
  leaving = new AbortController();
  waits(true);
  const record = { kind: "camera", item: "camera", is_streamed: true, dec_ns: now(), k_ns: [], text: "" };
  try {
    if (chosenModel() === "") throw new Error("There is no model to ask yet; see Models above.");
    const receipt = await read(record, await send(record, streamId));
    record.outcome = "ok";
    showReceipt(record, receipt);
    await showFrames(streamId, receipt?.frames ?? []);
  } catch (problem) {
    record.outcome ??= isLeaving(problem) ? "client_left" : problem.status ? "http_error" : "failed";
    record.status ??= problem.status || null;
    showProblem("ask-problem", isLeaving(problem) ? "Stopped; the call was closed." : problem);
  } finally {
    waits(false);
    keepQuestion(record);
  }
}

async function send(record, streamId) {
  const what = byId("ask-what").value;
  const stream = `stream://streams/${streamId}`;
  const part =
    what === "frame"
      ? { type: "image_url", image_url: { url: `${stream}?frame_index=-1` } }
      : { type: "video_url", video_url: { url: `${stream}?start_offset_ms=-${what}&max_fps=1` } };
  const content = [part, { type: "text", text: byId("ask-text").value }];
  const asked = {
    model: chosenModel(),
    messages: [{ role: "user", content }],
    stream: true,
    stream_options: { include_usage: true },
  };
  const body = new Blob([JSON.stringify(asked)]);
  record.request_bytes = body.size;
  record.ser_ns = now();
  const headers = { "Content-Type": "application/json" };
  record.hdr_ns = now();
  const answer = await request("v1beta/chat/completions", { method: "POST", body, headers, signal: leaving.signal });
  record.rsp_ns = now();
  record.status = answer.status;
  record.request_id = answer.headers.get("X-Request-Id");
  return answer;
}

/** Show tokens as they come; the receipt, or null when none came. */
async function read(record, answer) {
  let receipt = null;
  let isWhole = false;
  for await (const data of events(answer.body)) {
    const came = now();
    record.first_event_ns ??= came;
    if (data === "[DONE]") {
      isWhole = true;
      break;
    }
    const event = JSON.parse(data);
    if (event.error) throw new Error(event.error.message ?? "the model broke off");
    const choice = event.choices?.[0];
    const text = choice?.delta?.content ?? "";
    if (text !== "") {
      record.k_ns.push(came);
      record.k1_text_ns ??= came;
      record.text += text;
      byId("ask-answer").append(text);
    }
    record.model ??= event.model ?? null;
    record.finish_reason = choice?.finish_reason ?? record.finish_reason ?? null;
    record.prompt_tokens = event.usage?.prompt_tokens ?? record.prompt_tokens ?? null;
    record.completion_tokens = event.usage?.completion_tokens ?? record.completion_tokens ?? null;
    receipt = event.vision_bench ?? receipt;
    record.end_ns = came;
  }
  if (!isWhole) throw new Error("The answer broke off: its end never came.");
  record.end_ns = record.par_ns = now();
  return receipt;
}

function showReceipt(record, receipt) {
  const since = (stamp) => (stamp === undefined ? null : (stamp - record.hdr_ns) / 1e6);
  const ages = (receipt?.frames ?? []).map((frame) => frame.age_ms).filter((age) => age !== null);
  showNumbers("ask-numbers", [
    ["first token (TTFT)", milliseconds(since(record.k_ns[0]))],
    ["whole answer", milliseconds(since(record.end_ns))],
    ["frame age when chosen", milliseconds(ages.length > 0 ? Math.min(...ages) : null)],
    ["tokens", record.completion_tokens === null || record.completion_tokens === undefined ? "n/a" : String(record.completion_tokens)],
  ]);
  if (receipt === null) return;
  const known = receipt.stages.filter((stage) => stage.ms !== null && stage.place !== "upstream");
  drawStages(
    "ask-stages",
    "The newest frame, and the question about it, on the gateway's clock",
    known.map(({ stage, ms, place }) => ({
      name: stage.replaceAll("_", " "),
      ms,
      place: MODEL_STAGES.includes(stage) ? "model" : PLACES[place],
    })),
  );
}

/** The very frames that the model was shown, fetched by their numbers with a token for this stream. */
async function showFrames(streamId, frames) {
  if (frames.length === 0) return;
  const { view } = await json(`v1beta/streams/${streamId}/viewer-token`, { method: "POST" });
  const figures = await Promise.all(
    frames.slice(-SHOWN_FRAMES).map(async (frame) => {
      const caption = make("figcaption", {}, `frame ${frame.frame_index}, ${(frame.timestamp_ms / 1000).toFixed(2)} s`);
      const figure = make("figure", {}, caption);
      try {
        const path = `live/view/${streamId}?frame_index=${frame.frame_index}`;
        const blob = await (await request(path, { token: view.token })).blob();
        const url = URL.createObjectURL(blob);
        pictures.push(url);
        figure.prepend(make("img", { src: url, alt: `Frame ${frame.frame_index} as the model saw it` }));
      } catch (problem) {
        caption.append(`: ${problem.message}`);
      }
      return figure;
    }),
  );
  byId("ask-frames").replaceChildren(...figures);
}

function clear() {
  showProblem("ask-problem", null);
  pictures.forEach((url) => URL.revokeObjectURL(url));
  pictures = [];
  for (const id of ["ask-answer", "ask-numbers", "ask-frames", "ask-stages"]) byId(id).replaceChildren();
}

function waits(isWaiting) {
  byId("ask-button").hidden = isWaiting;
  byId("ask-stop").hidden = !isWaiting;
}
