// Server-sent events out of a stream of bytes, however it was cut.

/** The data of each event, as text, until the stream ends. */
export async function* events(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  let data = [];
  try {
    while (true) {
      const { done, value } = await reader.read();
      waiting += done ? "" : value;
      // A CR at the end may be the first half of a CR LF, unless nothing follows.
      const whole = !done && waiting.endsWith("\r") ? waiting.slice(0, -1) : waiting;
      const lines = whole.split(/\r\n|\r|\n/);
      waiting = lines.pop() + waiting.slice(whole.length);
      for (const line of lines) {
        if (line === "") {
          if (data.length > 0) yield data.join("\n");
          data = [];
        } else if (line.startsWith("data:")) {
          data.push(line.slice(line[5] === " " ? 6 : 5));
        }
      }
      if (done) return; // what was not ended by a blank line was cut off, and is no event
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
