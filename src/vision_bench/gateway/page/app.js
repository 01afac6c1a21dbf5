// Puts the parts together.

import { hasKey, useKey } from "./api.js";
import { prepareCamera, showCamera } from "./camera.js";
import { prepareClip } from "./clip.js";
import { byId } from "./dom.js";
import { watchState } from "./models.js";
import { prepareStamps } from "./stamps.js";
import { prepareWorld, showWorld } from "./world.js";

prepareClip();
prepareCamera();
prepareWorld();
prepareStamps();

const askAgain = watchState((state) => {
  byId("key-form").hidden = !state.needs_key;
  if (hasKey()) {
    byId("key-state").textContent = state.is_known ? "The key is good." : "The gateway does not know this key.";
  }
  showCamera(state);
  showWorld(state);
});

byId("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  useKey(byId("key").value);
  askAgain();
});
