// The page: what is shown, and what happens when somebody clicks, plays or presses a key.

import { Anchors, anchorKey, anchorLabel, anchorsCsv } from "./anchors.js";
import { KEYS, listenToKeys } from "./keys.js";
import { Result } from "./result.js";
import { Ruler } from "./ruler.js";
import { Sheet } from "./sheet.js";
import { askServer, whenServer } from "./server.js";
import { Sound } from "./sound.js";

const THEMES = ["system", "light", "dark"];
const SAME_PLACE_PX = 6; // a click so near to the last one asks for the next time that the place sounds

const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const results = data.results.map((each) => new Result(each));
const drafts = results.map((_, index) => data.results[index].anchors ?? []);

let current = 0;
let isCorrecting = false;
let loopFrom; // measure at which a repeat begins, while its end is still to be set
let lastClick;
let shownBar;

const result = () => results[current];

function clock(seconds) {
  const minutes = Math.floor(seconds / 60);
  return `${minutes}:${(seconds - 60 * minutes).toFixed(1).padStart(4, "0")}`;
}

function say(text, isBad = false) {
  $("message").textContent = text;
  $("message").hidden = !text;
  $("message").classList.toggle("bad", isBad);
}

// Time

function showTime(isJump = false) {
  const { seconds } = sound;
  const place = sheet.drawCursor(seconds);
  const measure = result().measureAt(seconds);
  const away = result().isElsewhere(seconds);
  $("now").textContent = clock(seconds);
  const bar = away ? "–" : measure ? `bar ${measure.number}` : `page ${place.page + 1}`;
  if (bar !== shownBar) $("bar").textContent = bar;
  shownBar = bar;
  if (document.activeElement !== $("seek") || isJump) $("seek").value = seconds;
  $("seek").setAttribute("aria-valuetext", `${bar}, ${seconds.toFixed(1)} seconds`);
  sheet.follow(isJump);
}

function seek(seconds) {
  sound.seek(seconds);
  sound.tick();
  showTime(true);
}

function run() {
  if (!sound.isPlaying) return;
  sound.tick();
  showTime();
  requestAnimationFrame(run);
}

// The score

function describe(page, x, y, seconds) {
  const parts = [];
  const measure = result().measureAt(seconds);
  if (measure) {
    parts.push(measure.pass > 1 ? `bar ${measure.number}, time ${measure.pass}` : `bar ${measure.number}`);
    const beat = result().beatAt(seconds);
    if (beat !== undefined) parts.push(`beat ${beat.toFixed(1).replace(/\.0$/, "")}`);
  }
  parts.push(`${seconds.toFixed(2)} s`, `${Math.round(100 * result().confidenceAt(seconds))} %`);
  return parts.join(" · ");
}

/** Choose between the times at which a place sounds: the one nearest to now, then one after the other. */
function choose(times, place) {
  const isAgain = lastClick && lastClick.page === place.page
    && Math.hypot(lastClick.x - place.x, lastClick.y - place.y) < SAME_PLACE_PX * 3;
  const now = sound.seconds;
  const nearest = times.reduce(
    (best, each, i) => (Math.abs(each - now) < Math.abs(times[best] - now) ? i : best), 0,
  );
  const choice = isAgain ? (lastClick.choice + 1) % times.length : nearest;
  lastClick = { ...place, choice };
  return times[choice];
}

function subjectAt({ page, x, y }) {
  const seconds = result().secondsAt(page, x, y);
  const now = sound.seconds;
  const near = (list) => [...list].sort((a, b) => Math.abs(a.start - now) - Math.abs(b.start - now))[0];
  const note = near(result().noteAt(page, x, y));
  if (note) return { note: note.id, label: `note in bar ${result().measureAt(note.start)?.number ?? "?"}`, at: note.start };
  const printed = result().measureBoxAt(page, x, y);
  if (printed) {
    const measure = near(result().measures.filter((each) => each.number === printed.number && each.system === printed.system));
    return { measure: measure.number, pass: measure.pass, at: measure.start };
  }
  return seconds.length ? { page, x: Math.round(x), y: Math.round(y), at: seconds[0] } : undefined;
}

function clickSheet(place) {
  const times = result().secondsAt(place.page, place.x, place.y);
  if (!times.length) {
    say("This place does not sound in the recording.");
    return;
  }
  say("");
  if (isCorrecting) {
    const subject = subjectAt(place);
    const known = anchors.find(anchorKey(subject));
    anchors.selected = known ?? { ...subject, second: subject.at, isCandidate: true };
    if (!sound.isPlaying) seek(anchors.selected.second);
    showAnchors();
    return;
  }
  seek(choose(times, place));
  sound.play();
}

function hoverSheet(place, e) {
  if (e.pointerType === "touch") return;
  const times = result().secondsAt(place.page, place.x, place.y);
  const tip = $("tip");
  tip.hidden = !times.length;
  const note = result().noteAt(place.page, place.x, place.y)[0];
  sheet.drawHover(note ?? result().measureBoxAt(place.page, place.x, place.y));
  if (!times.length) return;
  const now = sound.seconds;
  const nearest = times.reduce((best, each) => (Math.abs(each - now) < Math.abs(best - now) ? each : best));
  tip.textContent = describe(place.page, place.x, place.y, nearest);
  const width = tip.offsetWidth;
  const x = Math.min(e.clientX + 14, innerWidth - width - 8);
  const y = e.clientY + 48 > innerHeight ? e.clientY - 40 : e.clientY + 20;
  tip.style.transform = `translate(${x}px, ${y}px)`;
}

function leaveSheet() {
  $("tip").hidden = true;
  sheet.drawHover(undefined);
}

// Repeating

function showLoop(span) {
  sheet.result && sheet.drawLoop(span);
  $("loop").setAttribute("aria-pressed", String(Boolean(span) || loopFrom !== undefined));
  $("loop-range").hidden = !span || !result().measures.length;
  if (!span) return;
  const near = (seconds, key) => result().byStart.reduce(
    (best, each, i, all) => (Math.abs(each[key] - seconds) < Math.abs(all[best][key] - seconds) ? i : best), 0,
  );
  if (!$("loop-range").hidden) {
    $("loop-from").value = near(span[0], "start");
    $("loop-to").value = near(span[1], "end");
  }
}

/** Repeat from measure to measure, by their numbers in playing order. */
function repeat(from, to) {
  const { byStart } = result();
  const [first, last] = [byStart[Math.min(from, to)], byStart[Math.max(from, to)]];
  loopFrom = undefined;
  sound.setLoop([first.start, last.end]);
  if (sound.seconds < first.start || sound.seconds >= last.end) sound.seek(first.start);
}

function markLoop() {
  if (sound.loop) {
    loopFrom = undefined;
    sound.setLoop(null);
    say("");
    return;
  }
  const here = result().byStart.indexOf(result().measureAt(sound.seconds));
  const position = here >= 0 ? here : sound.seconds;
  if (loopFrom === undefined) {
    loopFrom = position;
    showLoop(null);
    const from = here >= 0 ? `bar ${result().byStart[here].number}` : clock(position);
    say(`Repeats from ${from}. Press L again, or the button, where it should end.`);
  } else if (here >= 0) {
    repeat(loopFrom, here);
    say("");
  } else {
    const ends = [loopFrom, position].sort((a, b) => a - b);
    loopFrom = undefined;
    sound.setLoop([ends[0], Math.max(ends[1], ends[0] + 0.5)]);
    say("");
  }
}

// Correcting

function showAnchors() {
  const { selected, list } = anchors;
  const isCandidate = selected && selected.isCandidate;
  const shown = isCandidate ? [...list, selected] : list;
  sound.setMarkers(!isCorrecting ? [] : shown.map((anchor) => ({
    id: anchorKey(anchor),
    seconds: anchor.second,
    label: anchorLabel(anchor),
    isSelected: anchor === selected,
    isAnchor: !anchor.isCandidate,
  })));
  sheet.drawAnchors(!isCorrecting ? [] : shown.flatMap((anchor) => {
    const place = placeOf(anchor);
    return place ? [{ ...place, isSelected: anchor === selected }] : [];
  }));
  $("anchors").replaceChildren(...list.map((anchor) => anchorRow(anchor, anchor === selected)));
  $("download").disabled = !list.length;
  ruler.isMovable = isCorrecting;
  ruler.draw();
}

function placeOf(anchor) {
  if (anchor.note !== undefined) {
    const note = result().notes.find((each) => each.id === anchor.note);
    return note && { x: (note.box[0] + note.box[2]) / 2, y: note.box[1], system: result().systems[note.system] };
  }
  if (anchor.measure !== undefined) {
    const measure = result().measures.find((each) => each.number === anchor.measure && each.pass === anchor.pass);
    return measure && { x: measure.box[0], y: measure.box[1], system: result().systems[measure.system] };
  }
  const system = result().systemAt(anchor.page, anchor.x, anchor.y);
  return system && { x: anchor.x, y: anchor.y, system };
}

function anchorRow(anchor, isSelected) {
  const row = document.createElement("li");
  if (isSelected) row.setAttribute("aria-current", "true");
  const go = document.createElement("button");
  go.className = "go";
  const [name, seconds] = [document.createElement("span"), document.createElement("span")];
  name.textContent = anchor.measure !== undefined ? `bar ${anchorLabel(anchor)}` : anchorLabel(anchor);
  seconds.textContent = `${anchor.second.toFixed(2)} s`;
  go.append(name, seconds);
  go.addEventListener("click", () => {
    anchors.selected = anchor;
    seek(anchor.second);
    showAnchors();
  });
  const remove = document.createElement("button");
  remove.textContent = "×";
  remove.setAttribute("aria-label", `Remove the anchor of ${name.textContent}`);
  remove.addEventListener("click", () => anchors.remove(anchor));
  row.append(go, remove);
  return row;
}

function anchorsChanged() {
  showAnchors();
  if (data.server) {
    decodeAgain("correct", { anchors: anchors.list });
    return;
  }
  drafts[current] = anchors.list;
  say(anchors.list.length && !data.server ? "Anchors are set. Download anchors.csv and align again with --anchors." : "");
}

/** Let the server decode again, or undo that; if it refuses, go back to the anchors before. */
async function decodeAgain(action, question) {
  const index = current;
  say("Decoding …");
  const answer = await askServer(action, { result: index, ...question });
  if (answer === undefined) return; // a newer question is under way
  if (answer.error) {
    anchors.load(drafts[index]);
    showAnchors();
    say(answer.error, true);
    return;
  }
  drafts[index] = answer.anchors;
  results[index].update(answer.tables);
  if (index !== current) return;
  const { selected } = anchors;
  anchors.load(answer.anchors);
  const kept = selected && anchors.find(anchorKey(selected));
  anchors.selected = kept;
  if (kept) kept.isTapped = selected.isTapped;
  sheet.drawMarks();
  sheet.drawLoop(sound.loop);
  showTime();
  showAnchors();
  $("undo").disabled = false;
  document.body.dataset.decoded = Number(document.body.dataset.decoded ?? 0) + 1;
  say("Decoded again. Saving …");
  whenServer((states) => states[index].saved || states[index].problem).then((states) => {
    if (states) say(states[index].problem || "Saved.", Boolean(states[index].problem));
  });
}

function toggleCorrecting() {
  isCorrecting = !isCorrecting;
  $("correct").setAttribute("aria-pressed", String(isCorrecting));
  $("correcting").hidden = !isCorrecting;
  showAnchors();
}

function moveMarker(key, seconds) {
  const subject = anchors.find(key) ?? anchors.selected;
  if (subject && anchorKey(subject) === key) anchors.set(subject, seconds);
}

/** The next downbeat is now. The first tap takes the measure whose start is nearest. */
function tap() {
  if (!isCorrecting) return;
  const { byStart } = result();
  if (!byStart.length) {
    say("There are no measures to tap; click a place and press A when it sounds.");
    return;
  }
  const now = sound.seconds;
  const last = anchors.selected && !anchors.selected.isCandidate && anchors.selected.isTapped
    ? byStart.findIndex((each) => each.number === anchors.selected.measure && each.pass === anchors.selected.pass)
    : -1;
  const nearest = byStart.reduce((best, each, i, all) => (Math.abs(each.start - now) < Math.abs(all[best].start - now) ? i : best), 0);
  const measure = byStart[last >= 0 && now > anchors.selected.second ? Math.min(last + 1, byStart.length - 1) : nearest];
  anchors.set({ measure: measure.number, pass: measure.pass, isTapped: true }, now);
}

function drop() {
  if (!isCorrecting) return;
  const now = sound.seconds;
  const place = result().placeAt(now);
  const subject = anchors.selected ?? subjectAt({ page: place.page, x: place.x, y: place.y });
  if (subject) anchors.set(subject, now);
}

function download() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([anchorsCsv(anchors.list)], { type: "text/csv" }));
  link.download = "anchors.csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// Results, colours

async function showResult(index, seconds) {
  const before = results[current];
  const wasPlaying = sound.isPlaying;
  const at = seconds ?? result().startSec;
  const to = index === current ? at : results[index].secondsLike(before, at);
  current = index;
  loopFrom = undefined;
  $("title").textContent = result().title;
  $("recording").textContent = results.length > 1 ? "" : result().recording.name;
  $("results").value = index;
  document.title = result().title;
  $("whole").textContent = clock(result().endSec);
  $("seek").min = result().startSec;
  $("seek").max = result().endSec;
  const bars = result().byStart.map(({ number, pass }, i) => new Option(pass > 1 ? `${number} (${pass})` : number, i));
  $("loop-from").replaceChildren(...bars);
  $("loop-to").replaceChildren(...bars.map((option) => option.cloneNode(true)));
  sheet.show(result());
  anchors.load(drafts[index]);
  await sound.show(result(), data.beside, to);
  sound.tick();
  showTime(true);
  showAnchors();
  if (!result().isReliable) {
    say(`The score hardly explains the recording (reliability ${result().reliability}); is it a recording of it?`, true);
  }
  if (wasPlaying) sound.play();
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  const isDark = theme === "dark" || (theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.shown = isDark ? "dark" : "light";
  $("theme").setAttribute("aria-label", `Colours: ${theme === "system" ? "as the system" : theme}`);
  sound.recolour();
  ruler.draw();
}

function nextTheme() {
  const now = THEMES.indexOf(document.documentElement.dataset.theme);
  const next = THEMES[(now + 1) % THEMES.length];
  setTheme(next);
  try {
    localStorage.setItem("fusili-mir-theme", next);
  } catch { /* a file opened from disk may have no storage */ }
}

function changeRate(by) {
  sound.setRate(by === null ? 1 : sound.rate + by);
  showRate();
}

function showRate() {
  $("rate").value = sound.rate;
  $("rate-text").textContent = `${Math.round(100 * sound.rate)} %`;
}

// Putting it together

const anchors = new Anchors(anchorsChanged);
const sheet = new Sheet($("scroller"), $("pages"), {
  click: clickSheet,
  hover: hoverSheet,
  leave: leaveSheet,
  zoom: (zoom) => { $("fit").textContent = `${Math.round(100 * zoom)} %`; },
});
const sound = new Sound($("wave"), document.body.dataset.nonce, {
  time: () => showTime(),
  seek,
  play: () => {
    document.body.classList.add("playing");
    $("play").setAttribute("aria-label", "Pause");
    requestAnimationFrame(run);
  },
  pause: () => {
    document.body.classList.remove("playing");
    $("play").setAttribute("aria-label", "Play");
    showTime();
  },
  error: (text) => {
    say(text, true);
    $("play").disabled = sound.isMute;
  },
  view: () => ruler.draw(),
  loop: showLoop,
  moved: moveMarker,
  picked: (key) => {
    anchors.selected = anchors.find(key) ?? anchors.selected;
    showAnchors();
  },
});
const ruler = new Ruler($("ruler"), sound, {
  seek,
  moved: (measure, seconds) => anchors.set({ measure: measure.number, pass: measure.pass }, seconds),
  picked: (measure) => {
    const subject = { measure: measure.number, pass: measure.pass, second: measure.start, isCandidate: true };
    anchors.selected = anchors.find(anchorKey(subject)) ?? subject;
    showAnchors();
  },
});

const actions = {
  toggle: () => sound.toggle(),
  step: (direction) => seek(result().nextStart(sound.seconds, direction)),
  skip: (by) => seek(sound.seconds + by),
  goToStart: () => seek(result().startSec),
  goToEnd: () => seek(result().endSec),
  changeRate,
  markLoop,
  zoom: (factor) => sheet.setZoom(sheet.zoom * factor),
  zoomWave: (factor) => sound.zoomWave(factor),
  nextResult: () => results.length > 1 && showResult((current + 1) % results.length, sound.seconds),
  toggleFollow: () => {
    sheet.follows = !sheet.follows;
    $("follow").setAttribute("aria-pressed", String(sheet.follows));
    if (sheet.follows) sheet.follow(true);
  },
  nextTheme,
  toggleCorrecting,
  tap,
  drop,
  remove: () => isCorrecting && anchors.selected && anchors.remove(anchors.selected),
  help: () => $("keys").showModal(),
  escape: () => {
    anchors.selected = undefined;
    loopFrom = undefined;
    sound.setLoop(null);
    showAnchors();
    say("");
  },
};
listenToKeys(actions);

const buttons = {
  play: actions.toggle,
  back: () => actions.step(-1),
  forward: () => actions.step(1),
  loop: markLoop,
  follow: actions.toggleFollow,
  correct: toggleCorrecting,
  smaller: () => actions.zoom(1 / 1.2),
  larger: () => actions.zoom(1.2),
  fit: () => sheet.setZoom(1),
  theme: nextTheme,
  help: actions.help,
  tap,
  drop,
  download,
  undo: () => decodeAgain("undo", {}),
};
for (const [id, action] of Object.entries(buttons)) $(id).addEventListener("click", action);
$("rate").addEventListener("input", () => {
  sound.setRate(Number($("rate").value));
  showRate();
});
$("seek").addEventListener("input", () => seek(Number($("seek").value)));
$("results").addEventListener("change", () => showResult(Number($("results").value), sound.seconds));
for (const id of ["loop-from", "loop-to"]) {
  $(id).addEventListener("change", () => repeat(Number($("loop-from").value), Number($("loop-to").value)));
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(document.documentElement.dataset.theme));

for (const [key, meaning] of KEYS) {
  const [term, text] = [document.createElement("dt"), document.createElement("dd")];
  term.textContent = key;
  text.textContent = meaning;
  $("key-list").append(term, text);
}
$("made-by").textContent = `${data.madeBy}. Waveform: wavesurfer.js (BSD-3-Clause).`;
$("results").replaceChildren(...results.map((each, index) => new Option(each.recording.name, index)));
document.querySelector(".recordings").hidden = results.length < 2;

if (data.server) {
  $("undo").hidden = false;
  whenServer((states) => states.every((state) => state.ready || state.problem)).then((states) => {
    const problem = states?.find((state) => state.problem)?.problem;
    if (problem) say(`Corrections cannot be decoded: ${problem}`, true);
  });
}

let theme = "system";
try {
  theme = localStorage.getItem("fusili-mir-theme") ?? theme;
} catch { /* no storage */ }
setTheme(THEMES.includes(theme) ? theme : "system");
const asked = Number(new URLSearchParams(location.hash.slice(1)).get("t"));
showResult(0, asked > 0 ? asked : undefined).then(() => document.body.classList.add("ready"));
