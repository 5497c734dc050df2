// What the pages need beside Gradio: grids of pictures that can be heard and walked (see grid.py), Escape, tables that
// can be scrolled by keys, searches in the browser's address (see search.py) and those of before, which stay in this
// browser.
(() => {
  const BETWEEN = "\u2003";
  const REMEMBERED = "perennial.searches";
  const MOST_REMEMBERED = 12;

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
    document.querySelectorAll("textarea:not([dir]), input[type=text]:not([dir])").forEach((box) => (box.dir = "auto"));

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

  const leave = () => {
    const close = document.querySelector("#close");
    if (!close || !close.offsetParent) return;
    close.click();
    document.querySelector("#results .thumbnail-item.selected, #results .thumbnail-item")?.focus();
  };

  // Searches. Gradio's own parts of an address (theme, language) stay in it.
  const OWN = (name) => name.startsWith("__");

  const withOwn = (search) => {
    const wanted = new URLSearchParams(search);
    for (const [name, value] of new URLSearchParams(location.search)) if (OWN(name)) wanted.append(name, value);
    const text = wanted.toString();
    return location.pathname + (text ? `?${text}` : "") + location.hash;
  };

  const withoutOwn = (search) => {
    const given = new URLSearchParams(search);
    for (const name of [...given.keys()]) if (OWN(name)) given.delete(name);
    return given.toString();
  };

  const enter = (search) => {
    if (withoutOwn(search) !== withoutOwn(location.search)) history.pushState(null, "", withOwn(search));
  };

  // A box of Gradio's takes a value that is typed and then entered.
  const go = (search) => {
    const box = document.querySelector("#address textarea, #address input");
    if (!box) return;
    box.value = search;
    box.dispatchEvent(new Event("input", { bubbles: true }));
    box.dispatchEvent(new KeyboardEvent("keypress", { key: "Enter", bubbles: true }));
  };

  const remembered = () => {
    try {
      const kept = JSON.parse(localStorage.getItem(REMEMBERED) || "[]");
      return Array.isArray(kept) ? kept.filter((one) => typeof one === "string") : [];
    } catch {
      return [];
    }
  };

  const remember = (searches) => {
    try {
      localStorage.setItem(REMEMBERED, JSON.stringify(searches.slice(0, MOST_REMEMBERED)));
    } catch {
      // A browser that keeps nothing has no earlier searches.
    }
  };

  let noted = null;
  const note = () => {
    const link = document.querySelector("#status a[href^='?']");
    const search = link ? link.getAttribute("href") : null;
    if (search === null || search === noted) return;
    noted = search;
    enter(search);
    const asked = new URLSearchParams(search);
    asked.delete("offset");
    if (!asked.get("text")) return;
    const plain = `?${asked}`;
    remember([plain, ...remembered().filter((one) => one !== plain)]);
  };

  const say = (key) => {
    const tables = window.gradio_config?.i18n_translations || {};
    const tag = navigator.language;
    return (tables[tag] || tables[tag.split("-")[0]] || tables.en || {})[key] || "";
  };

  const recent = () => {
    const hint = document.querySelector("#empty");
    const drawn = document.querySelector("#recent");
    const searches = hint && hint.offsetParent ? remembered() : [];
    if (drawn && drawn.dataset.shown === searches.join("\n")) return;
    drawn?.remove();
    if (!searches.length) return;
    const list = document.createElement("nav");
    list.id = "recent";
    list.dataset.shown = searches.join("\n");
    const title = document.createElement("h2");
    title.id = "recent-title";
    title.textContent = say("recent");
    list.setAttribute("aria-labelledby", title.id);
    list.append(title);
    for (const search of searches) {
      const link = document.createElement("a");
      link.href = search;
      link.textContent = new URLSearchParams(search).get("text");
      link.dir = "auto";
      list.append(link);
    }
    const forget = document.createElement("button");
    forget.type = "button";
    forget.textContent = say("forget");
    forget.addEventListener("click", () => (remember([]), recent()));
    list.append(forget);
    hint.after(list);
  };

  const follow = (event) => {
    const link = event.target.closest?.("a[href^='?']");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    event.stopPropagation();
    enter(link.getAttribute("href"));
    go(link.getAttribute("href"));
    scrollTo({ top: 0 });
  };

  addEventListener("popstate", () => {
    noted = null;
    go(location.search || "?");
  });
  document.addEventListener("click", follow, true);
  document.addEventListener("keydown", (event) => (event.key === "Escape" ? leave() : walk(event)), true);
  const look = () => {
    describeAll();
    reachTables();
    nameDrawings();
    direct();
    note();
    recent();
  };
  new MutationObserver(look).observe(document.documentElement, { childList: true, subtree: true, characterData: true });
})();
