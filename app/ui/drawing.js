// Elements, icons and words for the scripts of the search page. Whatever people wrote becomes text and never markup.

export const element = (name, attributes = {}, ...inside) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...inside.flat().filter((one) => one !== null && one !== undefined));
  return made;
};

// Lines of 24 × 24, drawn for these pages.
const ICONS = {
  search: "M10.5 4a6.5 6.5 0 1 1 0 13a6.5 6.5 0 0 1 0-13zM15.4 15.4L20.5 20.5",
  picture: "M4 5h16v14H4zM4 16l4.5-4.5l4 4l3-3L20 17M9 8.5v.1",
  close: "M5.5 5.5l13 13M18.5 5.5l-13 13",
  previous: "M14.5 5l-7 7l7 7",
  next: "M9.5 5l7 7l-7 7",
  fits: "M3.5 11h3.5v9.5H3.5zM7 11.5l4-8c1.7 0 2.6 1.1 2.3 2.8L12.800 9.500h6c1.300 0 2 1 1.700 2.200l-1.800 7c-.3 1.100-1 1.800-2.200 1.800H7",
  misfits: "M20.500 13h-3.500V3.500h3.500zM17 12.500l-4 8c-1.700 0-2.600-1.100-2.300-2.800l.5-3.200h-6c-1.300 0-2-1-1.700-2.200l1.800-7c.3-1.100 1-1.800 2.200-1.800H17",
  like: "M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM16.500 13.500v6.500M13.250 16.750h6.500",
  download: "M12 4v11M7 10.500l5 5l5-5M4.500 20h15",
  information: "M12 3.500a8.500 8.500 0 1 1 0 17a8.500 8.500 0 0 1 0-17zM12 11v5.500M12 7.500v.1",
  add: "M12 5v14M5 12h14",
  copy: "M8.500 8.500h11v11h-11zM5 15.500H4.500v-11h11V5",
};

export const icon = (name) => {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(svg.namespaceURI, "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
};

export const button = (key, name, act, attributes = {}) =>
  element("button", { type: "button", class: "icon-button", title: say(key), "aria-label": say(key), onclick: act, ...attributes }, icon(name));

// The words of the page in the language of the browser; English where a catalogue lacks one.
export const language = () => {
  const tables = window.gradio_config?.i18n_translations || {};
  return [navigator.language, navigator.language.split("-")[0], "en"].find((tag) => tables[tag]) || "en";
};

export const say = (key) => {
  const tables = window.gradio_config?.i18n_translations || {};
  return tables[language()]?.[key] || tables.en?.[key] || key;
};
