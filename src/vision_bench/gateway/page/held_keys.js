// W A S D, held: on the keyboard while the picture has the focus, or as buttons under a finger.

const STEP = 0.05; // a latent frame, as a camera script of the protocol moves

/** Calls `changed` with the held keys, such as "wa", whenever they change. */
export function watchKeys(stage, buttons, changed) {
  const held = new Set();
  function set(key, isDown) {
    if (held.has(key) === isDown) return;
    if (isDown) held.add(key);
    else held.delete(key);
    for (const button of buttons) button.setAttribute("aria-pressed", String(held.has(button.dataset.key)));
    changed([...held].sort().join(""));
  }
  const release = () => [...held].forEach((key) => set(key, false));

  for (const [type, isDown] of [["keydown", true], ["keyup", false]]) {
    stage.addEventListener(type, (event) => {
      const key = event.key.toLowerCase();
      if (!"wasd".includes(key) || key.length !== 1 || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      set(key, isDown);
    });
  }
  stage.addEventListener("blur", release);
  for (const button of buttons) {
    const { key } = button.dataset;
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("pointerdown", () => set(key, true));
    for (const type of ["pointerup", "pointerleave", "pointercancel", "blur"]) {
      button.addEventListener(type, () => set(key, false));
    }
    for (const [type, isDown] of [["keydown", true], ["keyup", false]]) {
      button.addEventListener(type, (event) => {
        if (event.key === " " || event.key === "Enter") set(key, isDown);
      });
    }
  }
}

/** What held keys do: +X is right, +Z is ahead; opposite keys cancel out. */
export function translation(held) {
  const has = (key) => (held.includes(key) ? STEP : 0);
  return [has("d") - has("a"), 0, has("w") - has("s")];
}
