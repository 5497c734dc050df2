// What a person drops or chooses, made into uploads: sent to the server, and followed until its job has taken them in.
import { say } from "./drawing.js";

const ARCHIVE = /\.(zip|tar|tgz|gz)$/i;
const TABLE = /\.(parquet|arrow|csv|tsv|jsonl?|xml|ndjson)$/i;
const HIDDEN = /(^|\/)(\.|__MACOSX|Thumbs\.db|desktop\.ini)/;
const MOST_FILES = 60_000;
const MOST_BYTES = 4 * 1024 ** 3 - 1024 ** 2; // of a zip without the extensions for larger ones
const V1 = new URL("../v1/", import.meta.url);

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

export const dropped = async (transfer) => {
  const entries = [...transfer.items].map((one) => one.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return [...transfer.files].map((file) => ({ path: file.name, file }));
  return (await Promise.all(entries.map(inside))).flat();
};

export const chosen = (input) => [...input.files].map((file) => ({ path: file.webkitRelativePath || file.name, file }));

export const isWanted = ({ path }) => !HIDDEN.test(path);

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

const zipped = async (files, onPart) => {
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
    onPart((number + 1) / files.length);
  }
  const size = directory.reduce((sum, one) => sum + one.byteLength, 0);
  const count = files.length;
  const end = header([[4, 0x06054b50], [2, 0], [2, 0], [2, count], [2, count], [4, size], [4, at], [2, 0]]);
  return new Blob([...parts, ...directory, end], { type: "application/zip" });
};

// Uploads. An archive is one by itself, and so is a table without anything beside it; all else goes together.

const uploadsOf = (every) => {
  const files = every.filter(isWanted);
  const isAlone = ({ path }) => !path.includes("/") && ARCHIVE.test(path);
  const rest = files.filter((one) => !isAlone(one));
  const together = rest.length && rest.every(({ path }) => TABLE.test(path)) ? rest.map((one) => [one]) : rest.length ? [rest] : [];
  return [...files.filter(isAlone).map((one) => [one]), ...together];
};

const nameOf = (files) => {
  const [first] = files[0].path.split("/");
  return files.every(({ path }) => path.startsWith(`${first}/`)) ? first : say("pictures");
};

const post = (file, name, fields, onPart) =>
  new Promise((resolve, reject) => {
    const form = new FormData();
    form.append("file", file, name);
    for (const [key, value] of fields) form.append(key, value);
    const request = new XMLHttpRequest();
    request.open("POST", new URL("chunks", V1));
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

// Sends files, and returns the jobs that take them in; `tell` is called with a word for it and the part that is done.
export const send = async (every, tell, fields = []) => {
  const uploads = uploadsOf(every);
  if (!uploads.length) throw new Error(say("no-files"));
  const jobs = [];
  for (const files of uploads) {
    const isWhole = files.length === 1 && (ARCHIVE.test(files[0].path) || TABLE.test(files[0].path));
    if (files.length > MOST_FILES || files.reduce((sum, { file }) => sum + file.size, 0) > MOST_BYTES)
      throw new Error(say("too-many"));
    const name = isWhole ? files[0].file.name : `${nameOf(files)}.zip`;
    const file = isWhole ? files[0].file : await zipped(files, (part) => tell(say("packing"), part));
    jobs.push(await post(file, name, fields, (part) => tell(say("sending"), part)));
  }
  return jobs;
};

// Waits for the job that takes an upload in, and returns its report.
export const taken = (job, onPart = () => {}) =>
  new Promise((resolve, reject) => {
    const events = new EventSource(new URL(`jobs/${encodeURIComponent(job.id)}/events`, V1));
    events.addEventListener("job", (event) => onPart(JSON.parse(event.data).progress.fraction ?? null));
    events.addEventListener("end", (event) => {
      events.close();
      const ended = JSON.parse(event.data);
      if (ended.state === "succeeded") resolve(ended.result.report);
      else reject(new Error(ended.error || say("away")));
    });
  });
