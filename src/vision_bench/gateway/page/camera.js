// A camera as a live stream: created, published over WHIP, kept alive, ended.

import { json, request } from "./api.js";
import { askCanBegin, prepareQuestions } from "./ask.js";
import { byId, showProblem } from "./dom.js";

const GATHER_MS = 2000;
const CONNECT_MS = 20_000;
const STATUS_MS = 2000;

let camera = null;

export function prepareCamera() {
  byId("camera-start").addEventListener("click", start);
  byId("camera-leave").addEventListener("click", () => leave("The camera is off, and its stream is gone."));
  addEventListener("pagehide", () => camera && leave("", { isLast: true }));
  prepareQuestions(() => camera?.id ?? null);
}

export function showCamera(state) {
  byId("camera-off").hidden = state.live;
  byId("camera-on").hidden = !state.live;
}

async function start() {
  showProblem("camera-problem", null);
  byId("camera-start").disabled = true;
  say("Asking for the camera …");
  const mine = { id: null, peer: null, media: null, timers: [] };
  camera = mine;
  try {
    mine.media = await pictures();
    byId("camera-video").srcObject = mine.media;
    byId("camera-video").play().catch(() => {}); // a preview that may not play shows its first picture
    say("Making a stream …");
    const created = await json("v1beta/streams", { method: "POST" });
    mine.id = created.id;
    if (created.publish.type !== "whip") {
      throw new Error("This gateway has no WebRTC; install vision-bench[live] where it runs.");
    }
    say("Connecting …");
    await publish(mine, created.publish);
    byId("camera-start").hidden = true;
    byId("camera-leave").hidden = false;
    askCanBegin(true);
    stay(mine, created.ttl_seconds);
  } catch (problem) {
    await leave("The camera is off.");
    showProblem("camera-problem", problem);
  } finally {
    byId("camera-start").disabled = false;
  }
}

async function pictures() {
  if (!navigator.mediaDevices) {
    throw new Error("Browsers give cameras to https pages and to this machine's own (http://127.0.0.1) only.");
  }
  try {
    const size = { width: { ideal: 640 }, height: { ideal: 360 }, frameRate: { ideal: 30 } };
    return await navigator.mediaDevices.getUserMedia({ video: size, audio: false });
  } catch (problem) {
    const why = { NotAllowedError: "the browser was not allowed to use it", NotFoundError: "there is none" };
    throw new Error(`No camera: ${why[problem.name] ?? problem.message}.`);
  }
}

/** WHIP: one offer with all its candidates, one answer. */
async function publish(mine, { url, token }) {
  const peer = new RTCPeerConnection({ iceServers: [] });
  mine.peer = peer;
  peer.addTransceiver(mine.media.getVideoTracks()[0], { direction: "sendonly", streams: [mine.media] });
  await peer.setLocalDescription(await peer.createOffer());
  await until(() => peer.iceGatheringState === "complete", peer, "icegatheringstatechange", GATHER_MS);
  const headers = { "Content-Type": "application/sdp" };
  const body = peer.localDescription.sdp;
  const answer = await request(pathOf(url), { method: "POST", body, headers, token });
  await peer.setRemoteDescription({ type: "answer", sdp: await answer.text() });
  if (!(await until(() => peer.connectionState === "connected", peer, "connectionstatechange", CONNECT_MS))) {
    throw new Error(
      "The gateway answered and no video could be sent: it is told its addresses by LIVE_ICE_ADDRESSES, and UDP must reach them.",
    );
  }
  peer.addEventListener("connectionstatechange", () => {
    if (peer.connectionState === "failed" && camera === mine) say("The connection is lost. Leave, and start again.");
  });
}

/** Our own origin only: a gateway behind another name is still where this page came from. */
const pathOf = (url) => url.slice(url.indexOf("live/whip/"));

/** Whether `condition` came true in time. */
function until(condition, target, event, within) {
  return new Promise((resolve) => {
    const look = () => condition() && finish(true);
    const timer = setTimeout(() => finish(false), within);
    function finish(came) {
      clearTimeout(timer);
      target.removeEventListener(event, look);
      resolve(came);
    }
    target.addEventListener(event, look);
    look();
  });
}

/** Keep the lease, and say how the stream is. */
function stay(mine, ttlSeconds) {
  const path = `v1beta/streams/${mine.id}`;
  const lost = (problem) => camera === mine && showProblem("camera-problem", problem);
  mine.timers.push(setInterval(() => request(`${path}/keepalive`, { method: "POST" }).catch(lost), (ttlSeconds * 1000) / 3));
  const look = async () => {
    if (document.hidden) return;
    try {
      const stream = await json(path);
      if (camera === mine) say(`On. ${stream.retained_frame_count} frames held, ${(stream.recent_fps ?? 0).toFixed(1)} a second.`);
    } catch (problem) {
      lost(problem);
    }
  };
  mine.timers.push(setInterval(look, STATUS_MS));
  look();
}

async function leave(words, { isLast = false } = {}) {
  const mine = camera;
  camera = null;
  askCanBegin(false);
  mine?.timers.forEach(clearInterval);
  mine?.media?.getTracks().forEach((track) => track.stop());
  mine?.peer?.close();
  byId("camera-video").srcObject = null;
  byId("camera-start").hidden = false;
  byId("camera-leave").hidden = true;
  say(words);
  if (mine?.id) await request(`v1beta/streams/${mine.id}`, { method: "DELETE", keepalive: isLast }).catch(() => {});
}

function say(words) {
  byId("camera-state").textContent = words;
}
