// What two questions need of an MP4 file: whether it has sound, and the name of its H.264 profile.

const TYPES = { moov: true, trak: true, mdia: true, minf: true, stbl: true, stsd: 8, avc1: 78, avc3: 78 };

/** Every box that matters, as [type, body]; a number in TYPES is what a container holds before its boxes. */
function* boxes(view, start, end) {
  let at = start;
  while (at + 8 <= end) {
    let size = view.getUint32(at);
    let head = 8;
    if (size === 1 && at + 16 <= end) {
      size = Number(view.getBigUint64(at + 8));
      head = 16;
    } else if (size === 0) {
      size = end - at;
    }
    if (size < head) return;
    const type = text(view, at + 4, 4);
    const last = Math.min(end, at + size);
    yield [type, at + head, last];
    const inside = TYPES[type];
    if (inside !== undefined) yield* boxes(view, at + head + (inside === true ? 0 : inside), last);
    at += size;
  }
}

const text = (view, at, length) =>
  Array.from({ length }, (_, index) => String.fromCharCode(view.getUint8(at + index))).join("");

/** Whether the file has a sound track; null for what is no MP4. */
export function hasSound(buffer) {
  const view = new DataView(buffer);
  let isMp4 = false;
  for (const [type, at, end] of boxes(view, 0, view.byteLength)) {
    isMp4 ||= type === "moov";
    if (type === "hdlr" && at + 12 <= end && text(view, at + 8, 4) === "soun") return true;
  }
  return isMp4 ? false : null;
}

/** The type that a player is told, such as `video/mp4; codecs="avc1.42C01E"`; null without H.264. */
export function mediaType(buffer) {
  const view = new DataView(buffer);
  for (const [type, at, end] of boxes(view, 0, view.byteLength)) {
    if (type === "avcC" && at + 4 <= end) {
      const profile = [1, 2, 3].map((place) => view.getUint8(at + place).toString(16).padStart(2, "0")).join("");
      return `video/mp4; codecs="avc1.${profile}"`;
    }
  }
  return null;
}
