(() => {
  const find = document.querySelector("#find");
  const count = document.querySelector("#count");
  const buttons = [...document.querySelectorAll("[data-outcome]")];
  const cards = [...document.querySelectorAll(".clip")].map((node) => ({ node, text: node.textContent.toLowerCase() }));
  let outcome = "";
  const apply = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { node, text } of cards) {
      const isIn = outcome === "" || node.dataset.outcome === outcome || (outcome === "warned" && node.dataset.warned);
      node.hidden = !(isIn && words.every((word) => text.includes(word)));
      shown += !node.hidden;
    }
    count.textContent = `${shown} of ${cards.length} clips`;
  };
  for (const button of buttons) {
    button.addEventListener("click", () => {
      outcome = button.dataset.outcome;
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
      apply();
    });
  }
  find.addEventListener("input", apply);
  window.addEventListener("hashchange", () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target?.hidden) { find.value = ""; buttons[0]?.click(); target.scrollIntoView(); }
  });
  document.querySelector(".filter").hidden = false;
  apply();
})();
