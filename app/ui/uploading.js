// The place of the Upload step. What is dropped or chosen waits there until a person has it sent, with what the fields
// beside it state; the step is told the job that takes it in (upload.py).
import { button, element, language, say } from "./drawing.js";
import { makePlace } from "./dropping.js";
import { isWanted, send, taken } from "./sending.js";

const MOST_SHOWN = 8;
let waiting = []; // files as `{ path, file }`

// A line for each file that lies loose, and for each folder.
const linesOf = (files) => {
  const found = new Map();
  for (const { path, file } of files) {
    const [first, inside] = path.split("/", 2);
    const line = found.get(first) || { first, isFolder: inside !== undefined, count: 0, bytes: 0 };
    line.count += 1;
    line.bytes += file.size;
    found.set(first, line);
  }
  return [...found.values()];
};

const sized = (bytes) => {
  const [unit, by] = bytes < 1e6 ? ["kilobyte", 1e3] : ["megabyte", 1e6];
  const digits = { maximumFractionDigits: bytes < 1e7 && bytes >= 1e6 ? 1 : 0 };
  return new Intl.NumberFormat(language(), { style: "unit", unit, ...digits }).format(Math.max(1, bytes / by));
};

const counted = (key, count) => say(key).replace("{count}", new Intl.NumberFormat(language()).format(count));

const list = element("ul", { class: "chosen-files" });

const show = () => {
  const lines = linesOf(waiting);
  const leave = (first) => {
    waiting = waiting.filter(({ path }) => path.split("/", 1)[0] !== first);
    show();
  };
  list.replaceChildren(
    ...lines.slice(0, MOST_SHOWN).map(({ first, isFolder, count, bytes }) =>
      element(
        "li",
        {},
        element("bdi", {}, isFolder ? `${first}/` : first),
        element("span", {}, [count > 1 ? counted("files", count) : "", sized(bytes)].filter(Boolean).join(" · ")),
        button("leave-out", "close", () => leave(first), { "aria-label": `${say("leave-out")}: ${first}` }),
      ),
    ),
  );
  if (lines.length > MOST_SHOWN) list.append(element("li", {}, counted("more-files", lines.length - MOST_SHOWN)));
};

const add = async (files) => {
  const known = new Map([...waiting, ...files.filter(isWanted)].map((one) => [one.path, one]));
  waiting = [...known.values()];
  show();
};

const { place, tell, working } = makePlace("drop-upload", add, { below: [list] });

const field = (id) => document.querySelector(`#${id} :is(input, textarea)`);

const stated = () => {
  const columns = field("chunk-columns").value.split(",");
  const every = [["language", field("chunk-language").value], ["domain", field("chunk-domain").value], ...columns.map((one) => ["map", one])];
  return every.map(([key, value]) => [key, value.trim()]).filter(([, value]) => value);
};

// A box of Gradio takes a value that is typed and then entered.
const answer = (text) => {
  const box = field("sent");
  box.value = text;
  box.dispatchEvent(new Event("input", { bubbles: true }));
  box.dispatchEvent(new KeyboardEvent("keypress", { key: "Enter", bubbles: true }));
};

const sendWaiting = async () => {
  const sent = waiting;
  if (!sent.length) return answer("none");
  let jobs;
  place.scrollIntoView({ block: "nearest" }); // on a telephone the button is a screen below its progress
  try {
    jobs = await working(() => send(sent, tell, stated()));
  } catch (error) {
    return answer(`none ${error.message}`);
  }
  if (!jobs) return undefined;
  answer(jobs.at(-1).id);
  // What was taken in goes; after a failure, which the job tells, the files stay to be tried again.
  const gone = () => {
    waiting = waiting.filter((one) => !sent.includes(one));
    show();
  };
  return Promise.all(jobs.map((job) => taken(job))).then(gone, () => {});
};

document.addEventListener("click", (event) => event.target.closest?.("#check") && sendWaiting());

// Gradio draws the place for it; whenever it draws that anew, it is put there again.
const settle = () => {
  const here = document.getElementById("file");
  if (here && place.parentElement !== here) here.append(place);
};
settle();
new MutationObserver(settle).observe(document.documentElement, { childList: true, subtree: true });
