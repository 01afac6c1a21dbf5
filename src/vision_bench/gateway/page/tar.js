// A folder of text files as one tar (POSIX ustar), for a browser saves one file at a time.

const BLOCK = 512;
const encoder = new TextEncoder();

/** @returns {Blob} */
export function tar(folder, files) {
  const parts = [];
  for (const [name, text] of Object.entries(files)) {
    const body = encoder.encode(text);
    parts.push(header(`${folder}/${name}`, body.length), body, new Uint8Array(-body.length & (BLOCK - 1)));
  }
  return new Blob([...parts, new Uint8Array(2 * BLOCK)], { type: "application/x-tar" });
}

function header(name, sizeBytes) {
  const block = new Uint8Array(BLOCK);
  const put = (at, text) => block.set(encoder.encode(text), at);
  const octal = (number, digits) => number.toString(8).padStart(digits, "0");
  put(0, name.slice(0, 100));
  put(100, "0000644\0");
  put(108, "0000000\0");
  put(116, "0000000\0");
  put(124, octal(sizeBytes, 11) + "\0");
  put(136, octal(Math.floor(Date.now() / 1000), 11) + "\0");
  put(148, "        "); // the sum counts its own place as blanks
  put(156, "0");
  put(257, "ustar\0" + "00");
  put(148, octal(block.reduce((sum, byte) => sum + byte, 0), 6) + "\0 ");
  return block;
}
