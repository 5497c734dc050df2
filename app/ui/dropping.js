// Pictures that a person drops or chooses: sent as one upload, taken in by a job of the server, and shown.
import { element, say } from "./drawing.js";

const UPLOAD = /\.(zip|tar|tgz|gz|parquet|arrow|csv|tsv|jsonl?|xml|ndjson)$/i; // whole by themselves
const HIDDEN = /(^|\/)(\.|__MACOSX|Thumbs\.db|desktop\.ini)/;
const MOST_FILES = 60_000;
const MOST_BYTES = 4 * 1024 ** 3 - 1024 ** 2; // of a zip without the extensions for larger ones

// Files as `{ path, file }`, those of folders with the folder before them.

const inside = (entry) =>
  new Promise((resolve, reject) => {
    if (entry.isFile) return entry.file((file) => resolve([{ path: entry.fullPath.slice(1), file }]), reject);
    const reader = entry.createReader();
    const found = [];
    // A reader gives some at a time, and none when there are no more.
    const read = () =>
      reader.readEntries(async (some) => {
        if (!some.length) return resolve((await Promise.all(found.map(inside))).flat());
        found.push(...some);
        read();
      }, reject);
    read();
  });

const dropped = async (transfer) => {
  const entries = [...transfer.items].map((one) => one.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return [...transfer.files].map((file) => ({ path: file.name, file }));
  return (await Promise.all(entries.map(inside))).flat();
};

const chosen = (input) => [...input.files].map((file) => ({ path: file.webkitRelativePath || file.name, file }));

// A zip of the files as they are (APPNOTE.TXT 6.3, method 0): pictures do not get smaller.

const CRCS = Uint32Array.from({ length: 256 }, (_, n) => {
  let crc = n;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});

const checksum = async (file) => {
  const reader = file.stream().getReader();
  let crc = 0xffffffff;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return (crc ^ 0xffffffff) >>> 0;
    for (const byte of value) crc = (crc >>> 8) ^ CRCS[(crc ^ byte) & 0xff];
  }
};

const header = (parts) => {
  const bytes = new DataView(new ArrayBuffer(parts.reduce((sum, [size]) => sum + size, 0)));
  let at = 0;
  for (const [size, value] of parts) {
    if (size === 2) bytes.setUint16(at, value, true);
    else bytes.setUint32(at, value, true);
    at += size;
  }
  return bytes.buffer;
};

export const zipped = async (files, onFile = () => {}) => {
  const parts = [];
  const directory = [];
  let at = 0;
  for (const [number, { path, file }] of files.entries()) {
    const name = new TextEncoder().encode(path);
    const crc = await checksum(file);
    // Version 2.0, names in UTF-8, stored, a day on which nobody relies.
    const about = [[2, 20], [2, 0x0800], [2, 0], [2, 0], [2, 0x21], [4, crc], [4, file.size], [4, file.size], [2, name.length]];
    const local = header([[4, 0x04034b50], ...about, [2, 0]]);
    directory.push(header([[4, 0x02014b50], [2, 20], ...about, [2, 0], [2, 0], [2, 0], [2, 0], [4, 0], [4, at]]), name);
    parts.push(local, name, file);
    at += local.byteLength + name.length + file.size;
    onFile((number + 1) / files.length);
  }
  const size = directory.reduce((sum, one) => sum + one.byteLength, 0);
  const count = files.length;
  const end = header([[4, 0x06054b50], [2, 0], [2, 0], [2, count], [2, count], [4, size], [4, at], [2, 0]]);
  return new Blob([...parts, ...directory, end], { type: "application/zip" });
};

const sent = (file, name, onPart) =>
  new Promise((resolve, reject) => {
    const form = new FormData();
    form.append("file", file, name);
    const request = new XMLHttpRequest();
    request.open("POST", "v1/chunks");
    request.upload.addEventListener("progress", (event) => event.lengthComputable && onPart(event.loaded / event.total));
    request.addEventListener("error", () => reject(new Error(say("away"))));
    request.addEventListener("load", () => {
      let answer = {};
      try {
        answer = JSON.parse(request.responseText);
      } catch {
        // What is no JSON is no answer of ours.
      }
      if (request.status === 202) resolve(answer.job);
      else reject(new Error(answer.error || say("away")));
    });
    request.send(form);
  });

const taken = (job, onPart) =>
  new Promise((resolve, reject) => {
    const events = new EventSource(`v1/jobs/${encodeURIComponent(job.id)}/events`);
    events.addEventListener("job", (event) => onPart(JSON.parse(event.data).progress.fraction ?? null));
    events.addEventListener("end", (event) => {
      events.close();
      const ended = JSON.parse(event.data);
      if (ended.state === "succeeded") resolve(ended.result.report);
      else reject(new Error(ended.error || say("away")));
    });
  });

// A place for pictures; `onTaken` is called with the report of what was taken in.
export const makeDropping = (onTaken) => {
  let busy = false;

  const said = element("p", { class: "dropping-said", "aria-live": "polite" });
  const bar = element("progress", { max: 1, hidden: true, "aria-label": say("adding") });
  const files = element("input", { type: "file", multiple: true, hidden: true, onchange: () => send(chosen(files)) });
  const folder = element("input", { type: "file", webkitdirectory: true, hidden: true, onchange: () => send(chosen(folder)) });
  const choose = (input, key) => element("button", { type: "button", class: "chip", onclick: () => input.click() }, say(key));
  const buttons = element(
    "div",
    { class: "dropping-buttons" },
    choose(files, "choose-files"),
    choose(folder, "choose-folder"),
    element("button", { type: "button", class: "chip", onclick: () => sample() }, say("sample")),
  );
  const place = element("div", { class: "dropping" }, element("p", {}, say("drop-here")), buttons, files, folder, bar, said);

  const tell = (text, part) => {
    said.textContent = text;
    bar.hidden = part === undefined;
    if (typeof part === "number") bar.value = part;
    else bar.removeAttribute("value");
  };

  // Does one thing at a time; what goes wrong is said, and it can be tried again.
  const working = async (work) => {
    if (busy) return;
    busy = true;
    buttons.hidden = true;
    try {
      const report = await work();
      tell("");
      onTaken(report);
    } catch (error) {
      tell(error.message);
    } finally {
      busy = false;
      buttons.hidden = false;
      files.value = folder.value = "";
    }
  };

  const upload = async (file, name) => {
    tell(say("sending"), 0);
    const job = await sent(file, name, (part) => tell(say("sending"), part));
    tell(say("taking-in"), null);
    return taken(job, (part) => tell(say("taking-in"), part));
  };

  const send = (every) =>
    working(async () => {
      const wanted = every.filter(({ path }) => !HIDDEN.test(path));
      if (!wanted.length) throw new Error(say("no-files"));
      if (wanted.length === 1 && UPLOAD.test(wanted[0].path)) return upload(wanted[0].file, wanted[0].file.name);
      if (wanted.length > MOST_FILES || wanted.reduce((sum, { file }) => sum + file.size, 0) > MOST_BYTES)
        throw new Error(say("too-many"));
      tell(say("packing"), 0);
      const [first] = wanted[0].path.split("/");
      const name = wanted.every(({ path }) => path.startsWith(`${first}/`)) ? first : say("pictures");
      return upload(await zipped(wanted, (part) => tell(say("packing"), part)), `${name}.zip`);
    });

  const sample = () =>
    working(async () => {
      tell(say("sending"), null);
      const answer = await fetch("assets/sample.zip");
      if (!answer.ok) throw new Error(say("away"));
      return upload(await answer.blob(), "sample.zip");
    });

  for (const name of ["dragenter", "dragover", "dragleave", "drop"])
    document.addEventListener(name, (event) => {
      if (!place.isConnected || event.target.closest?.("#query")) return;
      event.preventDefault();
      place.classList.toggle("over", name === "dragenter" || name === "dragover");
      if (name === "drop") dropped(event.dataTransfer).then(send, () => tell(say("no-files")));
    });

  return place;
};
