// The Search tab in the browser. The address is the search: it says which pictures are asked for (search_answers.py),
// what stands in the box and what the filters show, and which picture is open (viewer.js).
import { button, element, icon, say } from "./drawing.js";
import { followComing } from "./coming.js";
import { makeDropping } from "./dropping.js";
import { makeViewer } from "./viewer.js";

const REMEMBERED = "perennial.searches";
const ROW = "perennial.row";
const MOST_REMEMBERED = 12;
const AHEAD = "1600px"; // below the screen, where more pictures are asked for once a person scrolls
const SLOW = 250; // milliseconds after which a person is shown that something is under way
const ABOUT_FILTERS = ["text", "items", "picture", "offset", "sort"]; // all else in an address is theirs

// What the pictures on the screen answer.
let shown = { address: "", search: null, next: "", release: "", query: "", language: "", all: 0, pictures: null, failed: false };
let dropped = []; // pictures in the box, as data addresses
let running = null;

// Addresses. Gradio's own parts (theme, language) stay in all of them.

const own = (name) => name.startsWith("__");

const partsOf = (search) => {
  const parts = new URLSearchParams(search);
  for (const name of [...parts.keys()]) if (own(name)) parts.delete(name);
  return parts;
};

const searchOf = (search) => {
  const parts = partsOf(search);
  parts.delete("picture");
  return parts.toString();
};

const addressOf = (parts) => {
  const wanted = new URLSearchParams(parts);
  for (const [name, value] of new URLSearchParams(location.search)) if (own(name)) wanted.append(name, value);
  const text = wanted.toString();
  return location.pathname + (text ? `?${text}` : "") + location.hash;
};

// What stands on the page.

const heard = element("p", { class: "heard", "aria-live": "polite" });
const said = element("div", { id: "status" });
const results = element("ul", { id: "results", "aria-label": say("pictures"), "aria-busy": "true" });
const state = element("div", { id: "empty" });
const more = element("button", { type: "button", id: "more", class: "more", hidden: true, onclick: () => goOn() }, say("more"));
const input = element("input", {
  type: "search",
  name: "text",
  dir: "auto",
  placeholder: say("box"),
  "aria-label": say("box"),
  autocomplete: "off",
  enterkeyhint: "search",
  list: "recent",
});
const recent = element("datalist", { id: "recent" });
const chips = element("div", { class: "in-the-box" });
const chooser = element("input", {
  type: "file",
  accept: "image/*",
  multiple: true,
  tabindex: -1,
  "aria-label": say("by-picture"),
  onchange: () => drop([...chooser.files]).then(() => (chooser.value = "")),
});
const size = element("input", {
  type: "range",
  id: "size",
  min: 100,
  max: 360,
  step: 20,
  "aria-label": say("size"),
  title: say("size"),
  oninput: () => {
    document.documentElement.style.setProperty("--row", `${size.value}px`);
    keep(ROW, size.value);
  },
});
const box = element(
  "form",
  { id: "query", role: "search", class: "box", onsubmit: (event) => (event.preventDefault(), submit()) },
  icon("search"),
  chips,
  input,
  element("span", { class: "by-picture" }, chooser, button("by-picture", "picture", () => chooser.click())),
  element("button", { type: "submit", class: "go" }, say("search")),
  recent,
);
const PLACES = { "ask-here": [box], "said-here": [said, size], "pictures-here": [heard, state, results, more] };

const kept = (name) => {
  try {
    return localStorage.getItem(name);
  } catch {
    return null; // a browser that keeps nothing
  }
};

const keep = (name, value) => {
  try {
    localStorage.setItem(name, value);
  } catch {
    // As above.
  }
};

// Asking.

const pageIn = (text) => new DOMParser().parseFromString(text, "text/html").body.firstElementChild;

const sentenceOf = (page) => page?.querySelector(".refused p")?.textContent;

const ask = async (wanted, signal) => {
  const answer = await fetch("pictures", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ pictures: dropped, ...wanted }),
    signal,
  });
  const text = await answer.text();
  const page = pageIn(text);
  if (!page?.matches(".answer")) throw new Error(`status ${answer.status}`);
  return page;
};

const load = async (search) => {
  running?.abort();
  running = new AbortController();
  const { signal } = running;
  const slow = setTimeout(() => skeleton(), results.childElementCount ? SLOW : 0);
  results.setAttribute("aria-busy", "true");
  shown = { ...shown, search, next: "", failed: false };
  more.hidden = true;
  fill(search);
  try {
    show(await ask({ address: `?${search}` }, signal));
    remember(search);
  } catch (error) {
    if (!signal.aborted) fail(() => load(search));
  } finally {
    clearTimeout(slow);
    if (!signal.aborted) {
      results.setAttribute("aria-busy", "false");
      results.classList.remove("waiting");
    }
  }
};

const goOn = async () => {
  if (!shown.next || !running || results.getAttribute("aria-busy") === "true") return;
  const { signal } = running;
  results.setAttribute("aria-busy", "true");
  try {
    const page = await ask({ address: shown.address, cursor: shown.next }, signal);
    if (signal.aborted) return;
    if (page.dataset.next === undefined) return fail(goOn, sentenceOf(page));
    note(page);
    results.append(...page.querySelector("ul:last-child").children);
    viewer.grown();
  } catch (error) {
    if (!signal.aborted) fail(goOn);
  } finally {
    if (!signal.aborted) results.setAttribute("aria-busy", "false");
    watch();
  }
};

const note = (page) => {
  const { next, release, query, language, all } = page.dataset;
  shown = { ...shown, next: next || "", release, query, language, all: Number(all || 0), failed: false };
  more.hidden = !shown.next;
  size.hidden = !page.querySelector(".tile");
  state.replaceChildren();
};

const show = (page) => {
  shown.address = page.dataset.address ?? `?${shown.search}`;
  shown.pictures = page.dataset.pictures === undefined ? null : Number(page.dataset.pictures);
  note(page);
  said.replaceChildren(...page.querySelectorAll(":scope > .said"));
  state.replaceChildren(...page.querySelectorAll(":scope > .state"));
  state.querySelector("[data-drop]")?.append(dropping.place);
  if (page.dataset.adds !== undefined) offerToAdd();
  results.replaceChildren(...page.querySelector("ul:last-child").children);
  results.firstElementChild?.firstElementChild.setAttribute("tabindex", "0");
  heard.textContent = (said.querySelector(".count, p") || state).textContent;
  addRecent();
  if (page.dataset.unlearned !== undefined) openFilters();
  scrollTo({ top: 0 });
  watch();
  viewer.follow(partsOf(location.search).get("picture"));
};

// Who may upload finds the place for it beside the facts.
const offerToAdd = () => {
  const about = said.querySelector(".about");
  const act = () => {
    if (dropping.place.isConnected) state.replaceChildren();
    else state.replaceChildren(element("div", { class: "state adding" }, dropping.place));
  };
  if (about && !dropping.place.isConnected) about.after(button("add", "add", act, { id: "add" }));
};

const added = (reports) => {
  dropped = [];
  load(searchOf(location.search)).then(() => {
    const all = (name) => reports.reduce((sum, report) => sum + report[name], 0);
    const left = all("rejected") + all("held");
    const line = [`${say("added")}: ${all("new_images")}`, left ? `${say("left-out")}: ${left}` : ""];
    said.firstElementChild?.append(element("p", { class: "note" }, line.filter(Boolean).join(" · ")));
    heard.textContent = line[0];
  });
};

const fail = (again, sentence = say("away")) => {
  shown.failed = true;
  more.hidden = true;
  if (!shown.address) results.replaceChildren();
  const retry = element("button", { type: "button", class: "chip", onclick: again }, say("again"));
  state.replaceChildren(element("div", { class: "state", role: "alert" }, element("h2", {}, sentence), retry));
};

const skeleton = () => {
  results.classList.add("waiting");
  if (results.childElementCount) return;
  const ratios = [1.5, 1, 1.33, 0.75, 1.5, 1.33];
  for (let n = 0; n < 24; n += 1)
    results.append(element("li", { class: "tile blank", "aria-hidden": "true", style: `--ratio:${ratios[n % 6]}` }));
};

const watcher = (ahead) =>
  new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && goOn(), {
    rootMargin: `0px 0px ${ahead} 0px`,
  });

// Until a person scrolls, no more is asked for than the screen has room for.
let watching = watcher("0px");
const hurry = () => {
  watching.disconnect();
  watching = watcher(AHEAD);
  watch();
};
addEventListener("scroll", hurry, { once: true, passive: true });

// An observer tells of changes alone: one that begins anew says at once whether there is room for more.
const watch = () => {
  watching.disconnect();
  if (!more.hidden && !shown.failed) watching.observe(more);
};

// Going somewhere.

const go = (search, { tell = true, pictures = [] } = {}) => {
  dropped = pictures;
  const parts = partsOf(search);
  const wanted = addressOf(parts);
  if (wanted !== location.pathname + location.search + location.hash) history.pushState({}, "", wanted);
  if (tell) tellFilters(location.search);
  load(searchOf(location.search));
};

const submit = () => {
  const parts = partsOf(location.search);
  for (const name of ["text", "picture", "offset", "sort"]) parts.delete(name);
  const text = input.value.trim();
  const all = new URLSearchParams(text ? { text } : {});
  for (const [name, value] of parts) all.append(name, value);
  go(all, { tell: false, pictures: dropped });
};

const drop = async (files) => {
  const pictures = files.filter((one) => one.type.startsWith("image/"));
  if (!pictures.length) return;
  dropped = [...dropped, ...(await Promise.all(pictures.map(read)))];
  load(searchOf(location.search));
};

const read = (file) =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });

// The box shows what is asked: words, pictures of the gallery, and pictures that were dropped into it.
const fill = (search) => {
  const parts = new URLSearchParams(search);
  if (input.value.trim() !== (parts.get("text") || "")) input.value = parts.get("text") || "";
  const items = parts.getAll("items");
  chips.replaceChildren(
    ...items.map((id) =>
      chip(`v1/items/${encodeURIComponent(id)}/thumb`, () => {
        const left = partsOf(location.search);
        left.delete("items", id);
        go(left, { tell: false, pictures: dropped });
      }),
    ),
    ...dropped.map((data) =>
      chip(data, () => {
        dropped = dropped.filter((one) => one !== data);
        load(searchOf(location.search));
      }),
    ),
  );
};

const chip = (source, away) =>
  element("span", { class: "dropped" }, element("img", { src: source, alt: say("picture") }), button("without", "close", away));

// The filters are Gradio's. A box of its own takes a value that is typed and then entered.
const tellFilters = (search) => {
  const field = document.querySelector("#address textarea, #address input");
  if (!field) return;
  field.value = search || "?";
  field.dispatchEvent(new Event("input", { bubbles: true }));
  field.dispatchEvent(new KeyboardEvent("keypress", { key: "Enter", bubbles: true }));
};

let asked = "";
const hearFilters = () => {
  const link = document.querySelector("#asked a");
  const now = link ? link.getAttribute("href") : "";
  if (now === asked) return;
  asked = now;
  if (!now) return;
  const parts = partsOf(now);
  for (const [name, value] of partsOf(location.search))
    if (ABOUT_FILTERS.includes(name) && name !== "picture" && name !== "offset") parts.append(name, value);
  go(parts, { tell: false, pictures: dropped });
};

const openFilters = () => document.querySelector("#filters > button:not(.open)")?.click();

// Earlier searches, in this browser alone.

const remembered = () => {
  try {
    const list = JSON.parse(kept(REMEMBERED) || "[]");
    return Array.isArray(list) ? list.filter((one) => typeof one === "string") : [];
  } catch {
    return [];
  }
};

const texts = () => [...new Set(remembered().map((one) => new URLSearchParams(one).get("text")))].filter(Boolean);

const remember = (search) => {
  const parts = new URLSearchParams(search);
  parts.delete("offset");
  if (!parts.get("text")) return;
  const plain = `?${parts}`;
  keep(REMEMBERED, JSON.stringify([plain, ...remembered().filter((one) => one !== plain)].slice(0, MOST_REMEMBERED)));
  recent.replaceChildren(...texts().map((text) => element("option", { value: text })));
};

const addRecent = () => {
  recent.replaceChildren(...texts().map((text) => element("option", { value: text })));
  const about = said.querySelector(".about > div");
  if (!about || !remembered().length) return;
  const forget = () => (keep(REMEMBERED, "[]"), line.remove(), recent.replaceChildren());
  const line = element("p", { class: "recent" }, `${say("recent")} `, element("button", { type: "button", onclick: forget }, say("forget")));
  about.append(line);
};

const save = async (kind) => {
  const count = results.querySelectorAll(".tile").length;
  const { address, release } = shown;
  const wanted = { address, release, pictures: dropped, file: kind, shown: Math.min(count, kind === "zip" ? 100 : 1000) };
  const again = () => (state.replaceChildren(), save(kind));
  try {
    const answer = await fetch("pictures", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(wanted),
    });
    if (!answer.ok) return fail(again, sentenceOf(pageIn(await answer.text())));
    const link = element("a", { href: URL.createObjectURL(await answer.blob()), download: `results.${kind}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  } catch {
    fail(again);
  }
};

// Keys: one picture of the grid can be reached by Tab, the others from it by arrows.

const step = (tiles, at, key) => {
  const on = getComputedStyle(results).direction === "rtl" ? -1 : 1;
  const near = { ArrowRight: at + on, ArrowLeft: at - on, Home: 0, End: tiles.length - 1 }[key];
  if (near !== undefined) return tiles[near];
  const here = tiles[at].getBoundingClientRect();
  const middle = here.left + here.width / 2;
  const down = key === "ArrowDown" ? 1 : key === "ArrowUp" ? -1 : 0;
  let best = null;
  for (let n = at + down; down && n >= 0 && n < tiles.length; n += down) {
    const there = tiles[n].getBoundingClientRect();
    if (Math.abs(there.top - here.top) < 2) continue;
    if (best && Math.abs(there.top - best.top) > 2) break;
    const apart = Math.abs(there.left + there.width / 2 - middle);
    if (!best || apart < best.apart) best = { apart, top: there.top, tile: tiles[n] };
  }
  return best?.tile;
};

results.addEventListener("keydown", (event) => {
  const from = event.target.closest(".tile > a");
  if (!from || event.ctrlKey || event.metaKey || event.altKey) return;
  const tiles = [...results.querySelectorAll(".tile > a")];
  const to = step(tiles, tiles.indexOf(from), event.key);
  if (!to) return;
  event.preventDefault();
  to.focus();
});

results.addEventListener("focusin", (event) => {
  const tile = event.target.closest(".tile > a");
  if (!tile) return;
  results.querySelectorAll(".tile > a[tabindex='0']").forEach((one) => (one.tabIndex = -1));
  tile.tabIndex = 0;
});

// Links that begin with a question mark are searches of this page; those on pictures open them.
document.addEventListener(
  "click",
  (event) => {
    const file = event.target.closest?.("[data-file]");
    if (file) save(file.dataset.file);
    const open = said.querySelector(".about[open]");
    if (open && !open.contains(event.target)) open.open = false;
    const link = event.target.closest?.("a[href^='?']");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    event.stopPropagation();
    if (link.dataset.id) viewer.open(link);
    else {
      viewer.leave();
      go(link.getAttribute("href"));
    }
  },
  true,
);

document.addEventListener("keydown", (event) => {
  const open = event.key === "Escape" && said.querySelector(".about[open]");
  if (!open) return;
  open.open = false;
  open.querySelector("summary").focus();
});

for (const name of ["dragover", "drop"])
  box.addEventListener(name, (event) => {
    event.preventDefault();
    if (name === "drop") drop([...event.dataTransfer.files]);
  });
input.addEventListener("paste", (event) => drop([...event.clipboardData.files]));
// The cross in the box empties it, which asks for all pictures.
input.addEventListener("search", () => input.value || submit());

addEventListener("popstate", () => {
  const search = searchOf(location.search);
  if (search !== shown.search) {
    dropped = [];
    tellFilters(location.search);
    load(search);
  } else viewer.follow(partsOf(location.search).get("picture"));
});

const dropping = makeDropping(added);

const coming = followComing({
  answer: () => shown,
  state,
  heard,
  isBusy: () => dropping.isBusy() || results.getAttribute("aria-busy") === "true",
  reload: () => {
    state.replaceChildren();
    load(searchOf(location.search));
  },
});
PLACES["pictures-here"].push(coming.line);

const viewer = makeViewer({
  tiles: () => [...results.querySelectorAll(".tile > a")],
  answer: () => shown,
  goOn,
  like: (id) => {
    const parts = partsOf(location.search);
    for (const name of ["text", "items", "picture", "offset", "sort", "translation", "mode"]) parts.delete(name);
    parts.append("items", id);
    go(parts, { tell: false });
  },
});

// Gradio draws the places for these; whenever it draws them anew they are put there again.
const settle = () => {
  for (const [id, parts] of Object.entries(PLACES)) {
    const place = document.getElementById(id);
    if (place && parts[0].parentElement !== place) {
      place.append(...parts);
      if (id === "ask-here" && matchMedia("(pointer: fine)").matches) input.focus({ preventScroll: true });
    }
  }
  hearFilters();
};

size.value = kept(ROW) || "200";
if (kept(ROW)) document.documentElement.style.setProperty("--row", `${size.value}px`);
load(searchOf(location.search)).then(() => (settle(), coming.look()));
settle();
new MutationObserver(settle).observe(document.documentElement, { childList: true, subtree: true, characterData: true });
