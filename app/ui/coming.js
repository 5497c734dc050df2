// Pictures that are being added while somebody looks: how far that is, and the first ones as soon as they are there.
import { element, say } from "./drawing.js";

// Milliseconds until it is looked at again: while something comes, while there is nothing yet, and at other times.
const SOON = 1_500;
const LATER = 3_000;
const SELDOM = 20_000;

// `answer` gives what is on the screen, `reload` asks for it anew, and nothing happens while `isBusy`.
export const followComing = ({ answer, state, heard, isBusy, reload }) => {
  const said = element("span");
  const showNew = element("button", { type: "button", class: "chip", hidden: true, onclick: () => (hide(), reload()) }, say("show-new"));
  const line = element("p", { id: "coming", hidden: true }, said, showNew);
  const hide = () => (line.hidden = true);

  // A page without pictures says it large; the bar moves and nothing else does.
  const read = ({ line: text, part }) => {
    if (!state.querySelector(".reading")) {
      const bar = element("progress", { max: 1, "aria-label": say("adding") });
      state.replaceChildren(element("div", { class: "state reading" }, element("h2"), bar));
      heard.textContent = text;
    }
    state.querySelector("h2").textContent = text;
    const bar = state.querySelector("progress");
    if (part === null) bar.removeAttribute("value");
    else bar.value = part;
  };

  const fill = (now) => {
    hide();
    if (now.pictures) reload();
    else if (now.line) read(now);
    else if (state.querySelector(".reading")) reload(); // it has ended and brought none
    return now.line ? SOON : LATER;
  };

  // Pictures that somebody looks at stay where they are until that person asks for the new ones.
  const tell = (now) => {
    const { release, pictures } = answer();
    const isNew = now.release !== release && now.pictures > pictures;
    said.textContent = now.line || say("new-here");
    if (isNew && showNew.hidden) heard.textContent = say("new-here");
    showNew.hidden = !isNew;
    line.hidden = !now.line && !isNew;
    return now.line ? SOON : SELDOM;
  };

  const asked = async () => {
    const found = await fetch("coming");
    const { pictures } = answer();
    if (!found.ok || pictures === null || isBusy()) return LATER;
    return (pictures ? tell : fill)(await found.json());
  };

  const look = async () => {
    const wait = document.hidden || isBusy() ? LATER : await asked().catch(() => LATER);
    setTimeout(look, wait);
  };

  return { line, look };
};
