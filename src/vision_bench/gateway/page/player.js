// A growing MP4, played while it comes (Media Source Extensions).

import { mediaType } from "./mp4.js";

const KEPT_SECONDS = 30;

export class Player {
  #video;
  #source = new MediaSource();
  #buffer = null;
  #waiting = [];
  #isOver = false;
  #onProblem;

  /** How often the picture stood still because nothing was there to show. */
  stalls = 0;

  constructor(video, onProblem) {
    this.#video = video;
    this.#onProblem = onProblem;
    this.#source.addEventListener("sourceopen", () => this.#next(), { once: true });
    video.onwaiting = () => {
      if (video.currentTime > 0 && !this.#isOver) this.stalls += 1;
    };
    video.src = URL.createObjectURL(this.#source);
  }

  /** The next bytes of the file. */
  add(bytes) {
    this.#waiting.push(bytes);
    this.#next();
  }

  /** Nothing more comes. */
  end() {
    this.#isOver = true;
    this.#next();
  }

  /** Seconds of video that are there and not shown yet. */
  get aheadSeconds() {
    const ranges = this.#video.buffered;
    return ranges.length === 0 ? 0 : Math.max(0, ranges.end(ranges.length - 1) - this.#video.currentTime);
  }

  get shownSeconds() {
    return this.#video.currentTime;
  }

  close() {
    this.#isOver = true;
    this.#waiting = [];
    this.#video.onwaiting = null;
    URL.revokeObjectURL(this.#video.src);
    this.#video.removeAttribute("src");
    this.#video.load();
  }

  #next() {
    if (this.#source.readyState !== "open" || this.#buffer?.updating) return;
    try {
      if (this.#waiting.length > 0) {
        this.#buffer ??= this.#opened(this.#waiting[0]);
        this.#buffer.appendBuffer(this.#waiting.shift());
      } else if (this.#isOver && this.#buffer !== null) {
        this.#source.endOfStream();
      }
    } catch (problem) {
      this.close();
      this.#onProblem(new Error(`The browser cannot play the stream: ${problem.message}`));
    }
  }

  #opened(first) {
    const type = mediaType(first);
    if (type === null) throw new Error("it does not begin as an MP4 with H.264");
    if (!MediaSource.isTypeSupported(type)) throw new Error(`it has no decoder for ${type}`);
    const buffer = this.#source.addSourceBuffer(type);
    buffer.addEventListener("updateend", () => {
      this.#play();
      this.#forget(buffer);
      this.#next();
    });
    return buffer;
  }

  #play() {
    const video = this.#video;
    if (video.paused && video.buffered.length > 0 && !video.ended) {
      if (video.currentTime < video.buffered.start(0)) video.currentTime = video.buffered.start(0);
      video.play().catch(() => {}); // a stop while it begins
    }
  }

  /** What was shown long ago goes, or a long session fills the browser's memory. */
  #forget(buffer) {
    const until = this.#video.currentTime - KEPT_SECONDS;
    if (!this.#isOver && until > KEPT_SECONDS && buffer.buffered.start(0) < until - KEPT_SECONDS) buffer.remove(0, until);
  }
}
