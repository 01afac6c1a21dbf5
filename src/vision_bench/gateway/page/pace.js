// How a session of generated video keeps up: arithmetic alone, times in ms of one clock.

export class Pace {
  #chunks = [];
  #pictures = 0;
  #events = new Map();

  constructor(fps, startMs) {
    this.fps = fps;
    this.startMs = startMs;
    this.latest = null;
  }

  /** A chunk is there: its pictures, and the ids of the events that it is the first to show. */
  chunk({ pictures, startedEvents }, atMs) {
    const beginsSeconds = this.#pictures / this.fps;
    this.#chunks.push({ pictures, atMs });
    this.#pictures += pictures;
    for (const id of startedEvents) {
      const event = this.#events.get(id);
      if (event && event.receivedMs === null) Object.assign(event, { receivedMs: atMs, beginsSeconds });
    }
  }

  sent(id, what, atMs) {
    this.#events.set(id, { what, sentMs: atMs, receivedMs: null, beginsSeconds: null, shownMs: null });
  }

  /** The player shows `seconds` of the video now. */
  shows(seconds, atMs) {
    for (const event of this.#events.values()) {
      if (event.shownMs === null && event.beginsSeconds !== null && seconds >= event.beginsSeconds) {
        event.shownMs = atMs;
        this.latest = event;
      }
    }
  }

  get count() {
    return this.#chunks.length;
  }

  /** From the start to the first chunk; null before it. */
  get firstChunkMs() {
    return this.count > 0 ? this.#chunks[0].atMs - this.startMs : null;
  }

  /** Time between the last two chunks over what the last one shows: below 1 keeps up. Null before two. */
  get lastFactor() {
    return this.#factor(this.count - 2);
  }

  /** The same over all chunks behind the first. */
  get wholeFactor() {
    return this.#factor(0);
  }

  #factor(from) {
    if (from < 0 || this.count < 2) return null;
    const shown = this.#chunks.slice(from + 1).reduce((sum, chunk) => sum + chunk.pictures, 0) / this.fps;
    return shown > 0 ? (this.#chunks[this.count - 1].atMs - this.#chunks[from].atMs) / 1000 / shown : null;
  }
}
