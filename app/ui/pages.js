// What the pages need beside Gradio: grids of pictures that can be heard and walked (see grid.py), Escape, and tables
// that can be scrolled by keys.
(() => {
  const BETWEEN = "\u2003";

  // A caption is "note<em space>words": the note stays on the picture, the words become its description.
  const describe = (item) => {
    const label = item.querySelector(".caption-label");
    const image = item.querySelector("img");
    if (!label || !image) return;
    const place = label.textContent.indexOf(BETWEEN);
    if (place < 0) return;
    const words = label.textContent.slice(place + 1).trim();
    const text = label.firstChild;
    text.data = label.textContent.slice(0, place).trim();
    while (text.nextSibling) text.nextSibling.remove();
    image.alt = words;
    item.removeAttribute("aria-label");
  };

  const describeAll = () => document.querySelectorAll(".results .thumbnail-item").forEach(describe);

  const reachTables = () => document.querySelectorAll(".tables table").forEach((table) => (table.tabIndex = 0));

  // Gradio drops what makes a drawing one picture to those who hear the page.
  const nameDrawings = () =>
    document.querySelectorAll("svg.chart:not([role])").forEach((svg) => {
      svg.setAttribute("role", "img");
      svg.setAttribute("aria-label", svg.querySelector("title")?.textContent ?? "");
    });

  const columnsOf = (items) => {
    const top = items[0].getBoundingClientRect().top;
    const below = items.findIndex((item) => Math.abs(item.getBoundingClientRect().top - top) > 2);
    return below < 0 ? items.length : below;
  };

  const walk = (event) => {
    const from = event.target.closest(".results .thumbnail-item");
    if (!from) return;
    const items = [...from.closest(".results").querySelectorAll(".thumbnail-item")];
    const at = items.indexOf(from);
    const columns = columnsOf(items);
    const to = {
      ArrowRight: at + 1,
      ArrowLeft: at - 1,
      ArrowDown: at + columns,
      ArrowUp: at - columns,
      Home: 0,
      End: items.length - 1,
    }[event.key];
    if (to === undefined || !items[to]) return;
    event.preventDefault();
    event.stopPropagation();
    items[to].focus();
  };

  const leave = () => {
    const close = document.querySelector("#close");
    if (!close || !close.offsetParent) return;
    close.click();
    document.querySelector("#results .thumbnail-item.selected, #results .thumbnail-item")?.focus();
  };

  document.addEventListener("keydown", (event) => (event.key === "Escape" ? leave() : walk(event)), true);
  const look = () => {
    describeAll();
    reachTables();
    nameDrawings();
  };
  new MutationObserver(look).observe(document.documentElement, { childList: true, subtree: true, characterData: true });
})();
