// A session of generated video: begun over the gateway's relay, steered with held keys, shown as it comes.

import { address, json } from "./api.js";
import { byId, milliseconds, showNumbers, showProblem } from "./dom.js";
import { firstPicture } from "./first_picture.js";
import { translation, watchKeys } from "./held_keys.js";
import { Pace } from "./pace.js";
import { Player } from "./player.js";

const SHOW_MS = 100;
const PING_MS = 20_000;

let session = null;

export function prepareWorld() {
  byId("world-form").addEventListener("submit", (event) => {
    event.preventDefault();
    begin();
  });
  byId("world-stop").addEventListener("click", () => session?.stop());
  watchKeys(byId("world-stage"), [...byId("world-keys").querySelectorAll("button")], (held) => session?.steer(held));
}

export function showWorld(state) {
  byId("world-off").hidden = state.realtime;
  byId("world-on").hidden = !state.realtime;
}

async function begin() {
  showProblem("world-problem", null);
  byId("world-start").disabled = true;
  say("Starting …");
  try {
    session?.close();
    const start = await startMessage();
    session = new Session(await json("v1/realtime/ticket", { method: "POST" }), start);
    byId("world-start").hidden = true;
    byId("world-stop").hidden = false;
    byId("world-stage").focus();
  } catch (problem) {
    say("No session.");
    showProblem("world-problem", problem);
  } finally {
    byId("world-start").disabled = false;
  }
}

async function startMessage() {
  const [width, height] = byId("world-size").value.split("x").map(Number);
  if (!(width >= 16 && height >= 16 && width <= 4096 && height <= 4096)) throw new Error("The size must be like 832x480.");
  const url = await firstPicture(byId("world-image").files[0], width, height);
  return {
    type: "session.start",
    prompt: byId("world-prompt").value,
    image_reference: { image_url: url },
    width,
    height,
    num_frames: 12 * Number(byId("world-chunks").value) - 3, // a chunk has 12 pictures, the first one 9
    fps: Number(byId("world-fps").value),
    seed: 42,
    extra_params: { flow_shift: 5.0 },
  };
}

class Session {
  #socket;
  #player;
  #pace = null;
  #announced = null;
  #events = 0;
  #held = "";
  #timers = [];
  #isDone = false;

  constructor({ path, protocol, token }, start) {
    const url = address(path);
    url.protocol = url.protocol.replace("http", "ws");
    this.#player = new Player(byId("world-video"), (problem) => this.#fail(problem));
    this.#socket = new WebSocket(url, [protocol, `token.${token}`]);
    this.#socket.binaryType = "arraybuffer";
    this.#socket.onopen = () => {
      this.#pace = new Pace(start.fps, performance.now());
      this.#send(start);
      this.#timers.push(setInterval(() => this.#send({ type: "session.ping" }), PING_MS));
      say("Waiting for the first chunk …");
    };
    this.#socket.onmessage = ({ data }) => this.#take(data, performance.now());
    this.#socket.onclose = ({ reason }) => this.#closed(reason);
    this.#timers.push(setInterval(() => this.#show(), SHOW_MS));
  }

  steer(held) {
    if (held === this.#held || this.#socket.readyState !== WebSocket.OPEN || this.#isDone || this.#pace.count === 0) return;
    this.#held = held;
    const id = `page-${(this.#events += 1)}`;
    const camera = { mode: "velocity", data: { translation: translation(held), rotation: [0, 0, 0, 1] } };
    this.#pace.sent(id, held === "" ? "stand still" : held.toUpperCase(), performance.now());
    this.#send({ type: "session.interaction", interaction: { event_id: id, event: { multi_modal_data: { camera } } } });
  }

  stop() {
    say("Stopping …");
    if (this.#socket.readyState === WebSocket.OPEN) this.#send({ type: "session.stop" });
    else this.close();
  }

  close() {
    this.#timers.forEach(clearInterval);
    this.#socket.close();
    this.#player.close();
  }

  #send(message) {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  #take(data, atMs) {
    if (typeof data !== "string") {
      const about = this.#announced;
      this.#announced = null;
      if (about?.kind === "media") {
        this.#pace.chunk({ pictures: about.num_frames, startedEvents: about.started_event_ids ?? [] }, atMs);
      }
      this.#player.add(data);
      return;
    }
    const message = JSON.parse(data);
    if (message.type === "video.chunk_metadata") this.#announced = message;
    else if (message.type === "error") showProblem("world-problem", `The server says: ${message.message}`);
    else if (message.type === "session.done") this.#done(message);
  }

  #done({ stopped }) {
    this.#isDone = true;
    this.#player.end();
    say(stopped ? "Stopped." : "The world is complete.");
    this.#socket.close();
  }

  #closed(reason) {
    if (!this.#isDone) {
      this.#player.end();
      say("The session has ended.");
      if (byId("world-problem").hidden) {
        showProblem("world-problem", `The connection ended before the video did${reason ? `: ${reason}` : ""}.`);
      }
    }
    this.#isDone = true;
    if (session === this) {
      byId("world-start").hidden = false;
      byId("world-stop").hidden = true;
    }
  }

  #fail(problem) {
    showProblem("world-problem", problem);
    this.#socket.close();
  }

  #show() {
    if (this.#pace === null) return;
    const pace = this.#pace;
    pace.shows(this.#player.shownSeconds, performance.now());
    const factor = (value) => (value === null ? "n/a" : value.toFixed(2));
    const { latest } = pace;
    if (pace.count > 0 && !this.#isDone) say(`${pace.count} chunks.`);
    showNumbers("world-numbers", [
      ["RTF, last chunk (below 1 keeps up)", factor(pace.lastFactor)],
      ["RTF behind the first chunk", factor(pace.wholeFactor)],
      ["first chunk", milliseconds(pace.firstChunkMs)],
      ["buffer", `${this.#player.aheadSeconds.toFixed(2)} s`],
      ["stalls", String(this.#player.stalls)],
      [latest ? `${latest.what}: key to its chunk` : "key to its chunk", milliseconds(latest && latest.receivedMs - latest.sentMs)],
      [latest ? `${latest.what}: key to the picture` : "key to the picture", milliseconds(latest && latest.shownMs - latest.sentMs)],
    ]);
  }
}

function say(words) {
  if (byId("world-state").textContent !== words) byId("world-state").textContent = words;
}
