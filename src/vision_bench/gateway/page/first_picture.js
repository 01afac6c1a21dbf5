// The picture that a generated world begins with: a chosen file, cut to shape, or a street that is drawn here.

/** @returns {Promise<string>} a data: URL of a JPEG */
export async function firstPicture(file, width, height) {
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  const context = canvas.getContext("2d");
  if (file) {
    const picture = await createImageBitmap(file).catch(() => {
      throw new Error(`${file.name} is no picture that this browser reads.`);
    });
    const scale = Math.max(width / picture.width, height / picture.height);
    const [wide, high] = [picture.width * scale, picture.height * scale];
    context.drawImage(picture, (width - wide) / 2, (height - high) / 2, wide, high);
  } else {
    street(context, width, height);
  }
  return canvas.toDataURL("image/jpeg", 0.9);
}

function street(context, width, height) {
  const horizon = height * 0.55;
  const sky = context.createLinearGradient(0, 0, 0, horizon);
  sky.addColorStop(0, "#27356b");
  sky.addColorStop(1, "#f2a36b");
  context.fillStyle = sky;
  context.fillRect(0, 0, width, horizon);
  context.fillStyle = "#3c3f46";
  context.fillRect(0, horizon, width, height - horizon);
  for (let house = 0; house < 8; house += 1) {
    const left = (house * width) / 8;
    const top = horizon - height * (0.18 + 0.05 * ((house * 3) % 5));
    context.fillStyle = house % 2 ? "#5a4a52" : "#44505f";
    context.fillRect(left, top, width / 8 - 4, horizon - top);
    context.fillStyle = "#f5d98b";
    for (let light = 0; light < 6; light += 1) {
      const [column, row] = [light % 2, Math.floor(light / 2)];
      context.fillRect(left + width * (0.025 + 0.05 * column), top + height * (0.03 + 0.06 * row), width / 50, height / 30);
    }
  }
  context.fillStyle = "#e8e4d8";
  for (let mark = 1; mark < 6; mark += 1) {
    const at = horizon + ((height - horizon) * mark * mark) / 36;
    context.fillRect(width / 2 - 2 * mark, at, 4 * mark, 3 * mark);
  }
}
