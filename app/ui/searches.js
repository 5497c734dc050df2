// Searches in the browser's address (see search.py), those of before, which stay in this browser, and files to keep.
(() => {
  const REMEMBERED = "perennial.searches";
  const MOST_REMEMBERED = 12;

  // Gradio's own parts of an address (theme, language) stay in it.
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
    // Once the pictures are drawn: the browser takes its time over an address and what it is to remember.
    requestAnimationFrame(() => setTimeout(() => search === noted && keep(search)));
  };

  const keep = (search) => {
    enter(search);
    const asked = new URLSearchParams(search);
    asked.delete("offset");
    if (!asked.get("text")) return;
    const plain = `?${asked}`;
    remember([plain, ...remembered().filter((one) => one !== plain)]);
  };

  // A file that the server has made is taken by a button that nobody sees; its words change with each file.
  let taken = "";
  const take = () => {
    const ready = document.querySelector("#file-ready");
    const name = ready ? ready.textContent.trim() : "";
    if (!name || name === taken) return;
    taken = name;
    ready.click();
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
  const look = () => {
    note();
    recent();
    take();
  };
  new MutationObserver(look).observe(document.documentElement, { childList: true, subtree: true, characterData: true });
})();
