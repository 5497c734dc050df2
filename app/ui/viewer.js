// One picture over the page: large, with what is known of it, its neighbours an arrow away. It has an address.
import { button, element, icon, language, say } from "./drawing.js";

const FACTS = "perennial.facts";
const SWIPE = 50; // pixels

const address = (id) => {
  const parts = new URLSearchParams(location.search);
  parts.delete("picture");
  if (id) parts.set("picture", id);
  const text = parts.toString();
  return location.pathname + (text ? `?${text}` : "") + location.hash;
};

const searchFor = (text, tag) => `?${new URLSearchParams({ text: `"${text.replaceAll('"', " ")}"`, language: tag })}`;

const languageName = (tag) => {
  try {
    return new Intl.DisplayNames([language()], { type: "language" }).of(tag);
  } catch {
    return tag;
  }
};

const moment = (iso) => {
  const when = new Date(iso);
  if (Number.isNaN(when.getTime())) return iso;
  return new Intl.DateTimeFormat(language(), { dateStyle: "long", timeStyle: "short" }).format(when);
};

const copied = async (text) => {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Browsers keep the clipboard from pages of a plain address; what is selected can be copied all the same.
    const field = element("textarea", { class: "heard" }, text);
    document.querySelector("#viewer").append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
};

// What there is around it: `tiles` of the grid, the `answer` they are of, `goOn` for more of them, `like` for others.
export const makeViewer = ({ tiles, answer, goOn, like }) => {
  let id = null;
  let asking = null;

  const image = element("img", { alt: "", draggable: "false" });
  const stage = element("div", { class: "stage" }, image);
  const facts = element("aside", { class: "facts", "aria-label": say("information") });
  const noted = element("p", { class: "heard", "aria-live": "polite" });
  const previous = button("previous", "previous", () => step(-1), { class: "icon-button side-button previous" });
  const next = button("next", "next", () => step(1), { class: "icon-button side-button next" });
  const fits = button("fits", "fits", () => judge("up", fits), { "aria-pressed": "false" });
  const misfits = button("misfits", "misfits", () => judge("down", misfits), { "aria-pressed": "false" });
  const download = element("a", { class: "icon-button", title: say("download"), "aria-label": say("download"), download: "" }, icon("download"));
  const about = button("information", "information", () => showFacts(dialog.classList.contains("bare")));
  const bar = element(
    "div",
    { class: "viewer-bar" },
    button("close", "close", () => leave()),
    element("span", { class: "grows" }),
    fits,
    misfits,
    button("like", "like", () => {
      const chosen = id;
      hide();
      like(chosen);
    }),
    download,
    about,
  );
  const dialog = element(
    "dialog",
    { id: "viewer", "aria-label": say("picture") },
    element("div", { class: "viewer-main" }, bar, stage, previous, next, noted),
    facts,
  );

  const at = () => tiles().findIndex((tile) => tile.dataset.id === id);

  const showFacts = (are) => {
    dialog.classList.toggle("bare", !are);
    about.setAttribute("aria-expanded", String(are));
    try {
      localStorage.setItem(FACTS, are ? "shown" : "hidden");
    } catch {
      // A browser that keeps nothing shows them each time.
    }
  };

  const show = (wanted) => {
    id = wanted;
    if (!dialog.isConnected) document.body.append(dialog);
    if (!dialog.open) {
      let kept = null;
      try {
        kept = localStorage.getItem(FACTS);
      } catch {
        // As above.
      }
      showFacts(kept ? kept === "shown" : innerWidth > 900);
      dialog.showModal();
    }
    const all = tiles();
    const place = at();
    const small = all[place]?.querySelector("img");
    const base = `v1/images/${encodeURIComponent(id)}`;
    // The small picture stands there until the large one has come.
    stage.style.backgroundImage = small ? `url("${small.currentSrc || small.src}")` : "";
    stage.classList.add("waits");
    image.alt = small?.alt || say("picture");
    image.src = base;
    image.width = small?.getAttribute("width") || 0;
    image.height = small?.getAttribute("height") || 0;
    previous.hidden = place <= 0;
    next.hidden = place < 0 || (place >= all.length - 1 && !answer().next);
    fits.hidden = misfits.hidden = !answer().query;
    for (const one of [fits, misfits]) one.setAttribute("aria-pressed", "false");
    noted.textContent = "";
    for (const near of [place - 1, place + 1])
      if (place >= 0 && all[near]) new Image().src = `v1/images/${all[near].dataset.id}`;
    if (place >= 0 && place > all.length - 8) goOn();
    know(base);
  };

  image.addEventListener("load", () => stage.classList.remove("waits"));
  image.addEventListener("error", () => stage.classList.remove("waits"));

  const know = async (base) => {
    asking?.abort();
    asking = new AbortController();
    const { signal } = asking;
    download.href = base;
    download.setAttribute("download", `${id.slice(0, 16)}.webp`);
    try {
      const answered = await fetch(`v1/items/${encodeURIComponent(id)}`, { signal });
      const known = await answered.json();
      if (!answered.ok) throw new Error(known.error);
      if (known.sources.length) {
        download.href = `${base}/original`;
        download.setAttribute("download", known.sources[0].path.split("/").pop().split("!").pop());
      }
      facts.replaceChildren(...told(known, base));
    } catch (error) {
      if (signal.aborted) return;
      const again = element("button", { type: "button", class: "chip", onclick: () => know(base) }, say("again"));
      facts.replaceChildren(element("p", { role: "alert" }, say("away")), again);
    }
  };

  const told = (known, base) => {
    const file = known.sources.find((one) => one.kind === "file" && !one.gone);
    const folder = file ? file.path.slice(0, Math.max(1, file.path.lastIndexOf("/"))) : "";
    const others = `?${new URLSearchParams({ where: `folder = "${folder}"` })}`;
    const rows = {
      taken: known.taken && moment(known.taken),
      camera: known.camera,
      folder: folder && !folder.includes('"') ? element("a", { href: others, dir: "ltr" }, folder) : folder,
      pixels: `${known.width} × ${known.height} · ${known.format}`,
      domain: known.domain === "general" ? "" : known.domain,
    };
    const listed = Object.entries(rows)
      .filter(([, value]) => value)
      .map(([key, value]) => element("div", {}, element("dt", {}, say(key)), element("dd", { dir: "auto" }, value)));
    const captions = known.captions.map((one) =>
      element(
        "li",
        {},
        element("a", { href: searchFor(one.text, one.language), dir: "auto", lang: one.language }, one.text),
        element("span", { class: "tag" }, languageName(one.language)),
      ),
    );
    return [
      ...(captions.length ? [element("h2", {}, say("captions")), element("ul", { class: "spoken" }, captions)] : []),
      element("dl", {}, listed),
      ...(known.sources.length ? places(known.sources, base) : []),
    ];
  };

  const places = (sources, base) => [
    element("h2", {}, say("places")),
    element(
      "ul",
      { class: "places" },
      sources.map((one) =>
        element(
          "li",
          { class: one.gone ? "gone" : null },
          element("span", { dir: "ltr" }, one.path),
          ...(one.gone ? [element("em", {}, say("gone"))] : []),
          button("copy", "copy", async () => {
            await copied(one.path);
            noted.textContent = "";
            noted.textContent = say("copied");
          }),
        ),
      ),
    ),
    element("a", { href: `${base}/original`, target: "_blank", rel: "noopener", class: "chip" }, say("original")),
  ];

  const step = (on) => {
    const all = tiles();
    const there = all[at() + on];
    if (!there) return;
    history.replaceState(history.state, "", address(there.dataset.id));
    show(there.dataset.id);
  };

  const judge = async (verdict, pressed) => {
    const { query, language: tag, release } = answer();
    const opinion = { query, language: tag || "auto", release, image: id, verdict };
    try {
      const answered = await fetch("v1/feedback", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(opinion),
      });
      if (!answered.ok) throw new Error((await answered.json()).error);
      for (const one of [fits, misfits]) one.setAttribute("aria-pressed", String(one === pressed));
      noted.textContent = say("noted");
    } catch {
      noted.textContent = say("away");
    }
  };

  // Closes it; focus goes to the picture in the grid that was open last.
  const hide = () => {
    if (!dialog.open) return;
    const tile = tiles()[at()];
    dialog.close();
    asking?.abort();
    id = null;
    tile?.focus({ preventScroll: false });
  };

  // What a person does to close it, who then goes back to where they came from.
  const leave = () => {
    if (!dialog.open) return;
    if (history.state?.viewer) history.back();
    else {
      history.replaceState({}, "", address(null));
      hide();
    }
  };

  dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    leave();
  });
  dialog.addEventListener("keydown", (event) => {
    if (event.target.closest("input, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    const on = getComputedStyle(dialog).direction === "rtl" ? -1 : 1;
    const way = { ArrowRight: on, ArrowLeft: -on }[event.key];
    if (!way) return;
    event.preventDefault();
    step(way);
  });
  let touched = null;
  stage.addEventListener("touchstart", (event) => (touched = event.touches.length === 1 ? event.touches[0].clientX : null), { passive: true });
  stage.addEventListener("touchend", (event) => {
    if (touched === null) return;
    const moved = event.changedTouches[0].clientX - touched;
    touched = null;
    const on = getComputedStyle(dialog).direction === "rtl" ? -1 : 1;
    if (Math.abs(moved) > SWIPE) step(moved < 0 ? on : -on);
  });
  stage.addEventListener("click", (event) => event.target === stage && leave());

  return {
    open: (tile) => {
      history.pushState({ viewer: true }, "", address(tile.dataset.id));
      show(tile.dataset.id);
    },
    // Shows what the address says.
    follow: (wanted) => (wanted ? wanted !== id && show(wanted) : hide()),
    // For links inside it, which go elsewhere.
    leave: () => dialog.open && hide(),
    grown: () => id && (next.hidden = at() < 0 || at() >= tiles().length - 1),
  };
};
