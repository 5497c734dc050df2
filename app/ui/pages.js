// What the pages need beside Gradio: grids of pictures that can be heard and walked (see grid.py), drawings that are
// heard as one picture, tables that can be scrolled by keys, and words in the direction of their own script.
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

  // Words are read in the direction of their own script, whatever that of the page is.
  const direct = () =>
    document.querySelectorAll("textarea, input[type=text]").forEach((box) => {
      if (box.dir !== "auto") box.dir = "auto";
    });

  // Gradio picks the interface's language from the browser's; those who hear the page are told which, and the page runs
  // in its direction.
  const RIGHT_TO_LEFT = ["ar", "fa", "he", "ur"];
  const speak = () => {
    const tables = window.gradio_config?.i18n_translations;
    if (!tables) return;
    const tag = navigator.language.split("-")[0];
    const root = document.documentElement;
    const language = tables[tag] ? tag : "en";
    if (root.lang !== language) root.lang = language;
    const direction = RIGHT_TO_LEFT.includes(language) ? "rtl" : "ltr";
    if (root.dir !== direction) root.dir = direction;
  };

  // Whether a grid has pictures stands in an attribute: rules that look into the page for it (`:has`) had the browser
  // work out styles for 8 ms of each search.
  const notePictures = () =>
    document.querySelectorAll(".results").forEach((grid) => {
      const has = grid.querySelector(".thumbnail-item") !== null;
      if (has !== "pictures" in grid.dataset) has ? (grid.dataset.pictures = "") : delete grid.dataset.pictures;
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
    const on = getComputedStyle(from).direction === "rtl" ? -1 : 1;
    const to = {
      ArrowRight: at + on,
      ArrowLeft: at - on,
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

  const tell = (field, value) => {
    field.value = value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };

  // Of the form of a strategy's options the server is told what a person changed.
  const choose = (event) => {
    if (!event.target.dataset.option) return;
    const changed = {};
    for (const box of event.target.closest(".option-form").querySelectorAll("[data-option]"))
      if (box.value.trim() !== box.dataset.default) changed[box.dataset.option] = box.value.trim();
    tell(document.querySelector("#options-given :is(textarea, input)"), JSON.stringify(changed));
  };
  document.addEventListener("input", choose);

  // A cell of a table that was drawn on the server says which it is; a hidden field tells the server that it was pressed.
  let pressed = 0;
  const pick = (event) => {
    const button = event.target.closest("[data-pick]");
    const into = button?.closest("[data-into]")?.dataset.into || "quality-pick";
    const field = document.querySelector(`#${into} textarea, #${into} input`);
    if (!button || !field) return;
    pressed += 1;
    for (const other of button.parentElement.querySelectorAll(".chosen")) other.classList.remove("chosen");
    button.classList.add("chosen");
    tell(field, `${button.dataset.pick}#${pressed}`);
  };
  document.addEventListener("click", pick);

  // What this browser remembers of its searches is sent along where answers are compared; nobody keeps it.
  const recall = () => {
    const field = document.querySelector("[id$=-remembered] textarea, [id$=-remembered] input");
    if (!field || field.value) return;
    try {
      field.value = localStorage.getItem("perennial.searches") || "[]";
    } catch {
      return; // a browser that keeps nothing
    }
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };

  // Who goes on to another step begins at its top, however far down the button was.
  let step = -1;
  const begin = () => {
    const steps = [...document.querySelectorAll("#steps [role=tab]")];
    const now = steps.findIndex((one) => one.getAttribute("aria-selected") === "true");
    if (step >= 0 && now >= 0 && now !== step) scrollTo(0, 0);
    if (now >= 0) step = now;
  };

  document.addEventListener("keydown", walk, true);
  const look = () => {
    speak();
    describeAll();
    notePictures();
    reachTables();
    nameDrawings();
    direct();
    begin();
    recall();
  };
  new MutationObserver(look).observe(document.documentElement, { childList: true, subtree: true, characterData: true });
})();
