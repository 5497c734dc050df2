// Places for pictures, folders, tables and archives, which a person drops there or chooses.
import { element, say } from "./drawing.js";
import { chosen, dropped, send, taken } from "./sending.js";

// A place that hands over what is dropped or chosen, and tells how far the work with it is. `below` stands in it, too.
export const makePlace = (invitation, onFiles, { buttons = [], below = [] } = {}) => {
  let busy = false;

  const said = element("p", { class: "dropping-said", "aria-live": "polite" });
  const bar = element("progress", { max: 1, hidden: true, "aria-label": say("adding") });
  const take = (input) => onFiles(chosen(input)).then(() => (input.value = ""));
  const files = element("input", { type: "file", multiple: true, hidden: true, onchange: () => take(files) });
  const folder = element("input", { type: "file", webkitdirectory: true, hidden: true, onchange: () => take(folder) });
  const button = (key, onclick) => element("button", { type: "button", class: "chip", onclick }, say(key));
  const choices = element(
    "div",
    { class: "dropping-buttons" },
    button("choose-files", () => files.click()),
    button("choose-folder", () => folder.click()),
    buttons.map(([key, act]) => button(key, act)),
  );
  const place = element("div", { class: "dropping" }, element("p", {}, say(invitation)), choices, files, folder, below, bar, said);

  const tell = (text, part) => {
    said.textContent = text;
    bar.hidden = part === undefined;
    if (typeof part === "number") bar.value = part;
    else bar.removeAttribute("value");
  };

  // Does one thing at a time, and returns what comes of it; what goes wrong is thrown on, and it can be tried again.
  const working = async (work) => {
    if (busy) return undefined;
    busy = true;
    choices.hidden = true;
    try {
      return await work();
    } finally {
      tell("");
      busy = false;
      choices.hidden = false;
    }
  };

  for (const name of ["dragenter", "dragover", "dragleave", "drop"])
    document.addEventListener(name, (event) => {
      if (!place.offsetParent || event.target.closest?.("#query")) return;
      event.preventDefault();
      place.classList.toggle("over", name === "dragenter" || name === "dragover");
      if (name === "drop" && !busy) dropped(event.dataTransfer).then(onFiles, () => tell(say("no-files")));
    });

  return { place, tell, working, isBusy: () => busy };
};

// The place of the Search page, which takes in at once what it is given; `onTaken` is called with the report of it.
export const makeDropping = (onTaken) => {
  const takeIn = async (every) => {
    try {
      const reports = await working(async () => {
        const jobs = await send(await every(), tell);
        tell(say("taking-in"), null);
        const found = [];
        for (const job of jobs) found.push(await taken(job, (part) => tell(say("taking-in"), part)));
        return found;
      });
      if (reports) onTaken(reports);
    } catch (error) {
      tell(error.message);
    }
  };

  const sample = async () => {
    tell(say("sending"), null);
    const answer = await fetch(new URL("sample.zip", import.meta.url));
    if (!answer.ok) throw new Error(say("away"));
    return [{ path: "sample.zip", file: new File([await answer.blob()], "sample.zip") }];
  };

  const { place, tell, working, isBusy } = makePlace("drop-here", (files) => takeIn(() => files), {
    buttons: [["sample", () => takeIn(sample)]],
  });
  return { place, isBusy };
};
