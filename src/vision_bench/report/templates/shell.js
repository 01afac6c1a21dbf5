"use strict";
(() => {
  const style = () => getComputedStyle(document.documentElement);
  const colours = (value, css) => {
    if (typeof value === "string") {
      const found = /^var\((--[a-z0-9-]+)\)$/.exec(value);
      return found ? css.getPropertyValue(found[1]).trim() : value;
    }
    if (Array.isArray(value)) return typeof value[0] === "number" ? value : value.map((item) => colours(item, css));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, colours(item, css)]));
    }
    return value;
  };
  const themed = (layout, css) => {
    const axis = {
      gridcolor: "var(--line)", linecolor: "var(--line)", zerolinecolor: "var(--line)", automargin: true,
    };
    const made = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "closest",
      font: { color: "var(--ink)", size: 12, family: getComputedStyle(document.body).fontFamily },
      colorway: [1, 2, 3, 4, 5, 6, 7, 8].map((number) => `var(--c${number})`),
      margin: { l: 60, r: 20, t: layout.title ? 40 : 12, b: 48 },
      legend: { orientation: "h", y: -0.22, yanchor: "top", x: 0 },
      hoverlabel: { bgcolor: "var(--card)", bordercolor: "var(--line)", font: { color: "var(--ink)" } },
      ...layout,
    };
    for (const name of Object.keys({ xaxis: 1, yaxis: 1, ...layout }).filter((name) => /^[xy]axis\d*$/.test(name))) {
      made[name] = { ...axis, ...made[name] };
    }
    return colours(made, css);
  };
  const plots = [...document.querySelectorAll(".plot")].map((element) => {
    const figure = JSON.parse(element.querySelector("script").textContent);
    element.replaceChildren();
    return { element, figure };
  });
  const draw = () => {
    const css = style();
    for (const { element, figure } of plots) {
      Plotly.react(element, colours(figure.data, css), themed(figure.layout, css), {
        responsive: true, displaylogo: false, displayModeBar: false,
      });
    }
  };
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
})();
