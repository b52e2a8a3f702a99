// A result: a score and a recording, aligned. Seconds are those of the recording, places are pixels of the pages.

const DOUBTFUL = 0.5; // a place is marked if it is less probable
const LEAST_DOUBT_SEC = 0.3;
const HEAD_MARGIN = 0.4; // staff spaces around a note head that still count as the note

/** Return how many of the sorted values are at most x. */
export function countUpTo(values, x) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= x) low = middle + 1;
    else high = middle;
  }
  return low;
}

function interpolate(x, xs, ys) {
  const after = countUpTo(xs, x);
  if (after === 0) return ys[0];
  if (after === xs.length) return ys[ys.length - 1];
  const share = (x - xs[after - 1]) / (xs[after] - xs[after - 1]);
  return ys[after - 1] + share * (ys[after] - ys[after - 1]);
}

/** One line of music on a page, which may be tilted. */
class System {
  constructor({ page, corners, space }, index) {
    Object.assign(this, { index, page, corners, space });
    const [[x0, y0], [x1, y1]] = corners;
    this.length = Math.hypot(x1 - x0, y1 - y0) || 1;
    this.direction = [(x1 - x0) / this.length, (y1 - y0) / this.length];
  }

  /** Return how far along the system a place is, and how far below its top. */
  locate(x, y) {
    const [dx, dy] = [x - this.corners[0][0], y - this.corners[0][1]];
    const [ux, uy] = this.direction;
    return { along: dx * ux + dy * uy, below: dy * ux - dx * uy };
  }

  get height() {
    return this.locate(...this.corners[3]).below;
  }

  /** Return the place so far along the system, and so far below its top. */
  at(along, below) {
    const [ux, uy] = this.direction;
    const [x, y] = this.corners[0];
    return [x + along * ux - below * uy, y + along * uy + below * ux];
  }

  /** Return how far a place is above or below the system; 0 inside. */
  distance(x, y) {
    const { below } = this.locate(x, y);
    return Math.max(-below, below - this.height, 0);
  }
}

export class Result {
  constructor(data) {
    this.title = data.title;
    this.score = data.score;
    this.recording = data.recording;
    this.pages = data.pages;
    this.systems = data.systems.map((system, index) => new System(system, index));
    this.update(data);
  }

  /** Take over the tables of a result that was decoded again. */
  update(tables) {
    this.measures = this.#rows(tables.measures);
    this.notes = this.#rows(tables.notes);
    this.places = this.#rows(tables.places).map((place) => {
      const system = this.systems[place.system];
      const [x0, y0, x1, y1] = place.ends;
      return { ...place, from: system.locate(x0, y0).along, to: system.locate(x1, y1).along };
    });
    this.frames = tables.frames;
    this.elsewhere = tables.elsewhere;
    this.isReliable = tables.isReliable;
    this.reliability = tables.reliability;
    this.noteStarts = this.notes.map((note) => note.start);
    this.placeStarts = this.places.map((place) => place.start);
    this.longestNote = this.notes.reduce((most, note) => Math.max(most, note.end - note.start), 0);
    this.byStart = [...this.measures].sort((a, b) => a.start - b.start);
    this.measureStarts = this.byStart.map((measure) => measure.start);
    this.#followFrames();
    this.clickRuns = this.places.length ? this.#followPlaces() : this.runs;
    this.#countBeats();
    this.doubtful = this.#doubtfulSpans();
  }

  #rows(columns) {
    const names = Object.keys(columns);
    return columns[names[0]].map((_, row) => {
      const entries = names.map((name) => [name, columns[name][row]]);
      return { index: row, ...Object.fromEntries(entries) };
    });
  }

  get startSec() {
    return this.recording.startSec;
  }

  get endSec() {
    return this.recording.startSec + this.recording.durationSec;
  }

  /** Split the way of the music into runs, each through one system from left to right. */
  #followFrames() {
    const { system, x, y, start, step } = this.frames;
    this.runs = [];
    let run = null;
    for (let i = 0; i < system.length; i += 1) {
      const { along } = this.systems[system[i]].locate(x[i], y[i]);
      const goesOn = run && run.system === system[i] && along >= run.along[run.along.length - 1] - 0.2;
      if (!goesOn) {
        run = { system: system[i], along: [], seconds: [] };
        this.runs.push(run);
      }
      run.along.push(Math.max(along, run.along[run.along.length - 1] ?? along));
      run.seconds.push(start + (i + 0.5) * step);
    }
  }

  /** Split the places of an image into runs; inside a place all is as late as its beginning. */
  #followPlaces() {
    const runs = [];
    this.places.forEach((place, i) => {
      const last = this.places[i - 1];
      if (!last || last.system !== place.system || place.from < last.from) {
        runs.push({ system: place.system, along: [], seconds: [] });
      }
      const run = runs[runs.length - 1];
      const before = run.along[run.along.length - 1] ?? -Infinity;
      const from = Math.max(place.from, before);
      run.along.push(from, Math.max(place.to, from + 1e-6));
      run.seconds.push(place.start, place.start);
    });
    return runs;
  }

  #countBeats() {
    const known = new Map();
    for (const { beat, start } of [...this.measures, ...this.notes]) {
      if (beat !== null && !known.has(beat)) known.set(beat, start);
    }
    const pairs = [...known].sort((a, b) => a[1] - b[1]);
    this.beatSeconds = pairs.map(([, seconds]) => seconds);
    this.beats = pairs.map(([beat]) => beat);
  }

  #doubtfulSpans() {
    const { confidence, start, step } = this.frames;
    const spans = [];
    for (let i = 0; i < confidence.length; i += 1) {
      const seconds = start + i * step;
      if (confidence[i] >= DOUBTFUL || this.isElsewhere(seconds + step / 2)) continue;
      const last = spans[spans.length - 1];
      if (last && seconds - last[1] < LEAST_DOUBT_SEC) last[1] = seconds + step;
      else spans.push([seconds, seconds + step]);
    }
    return spans.filter(([from, to]) => to - from >= LEAST_DOUBT_SEC);
  }

  /** Say whether something other than the score sounds; the last frame before the music may be part of it. */
  isElsewhere(seconds) {
    const margin = 1.5 * this.frames.step;
    return this.elsewhere.some(([from, to]) => seconds >= from && seconds < to - margin);
  }

  /** Return where the music is, as the maps of Python do. */
  placeAt(seconds) {
    const { system, x, y, confidence, start, step } = this.frames;
    const last = system.length - 1;
    const position = Math.min(Math.max((seconds - start) / step - 0.5, 0), last);
    const before = Math.floor(position);
    const after = Math.min(before + 1, last);
    const share = position - before;
    const nearest = share < 0.5 ? before : after;
    const moves = system[before] === system[after] && x[after] >= x[before];
    const mix = (values) =>
      moves ? (1 - share) * values[before] + share * values[after] : values[nearest];
    return {
      system: this.systems[system[nearest]],
      page: this.systems[system[nearest]].page,
      x: mix(x),
      y: mix(y),
      confidence: confidence[nearest],
    };
  }

  /** Return the notes that sound. */
  soundingAt(seconds) {
    const sounding = [];
    for (let i = countUpTo(this.noteStarts, seconds) - 1; i >= 0; i -= 1) {
      if (this.noteStarts[i] < seconds - this.longestNote) break;
      if (this.notes[i].end > seconds) sounding.push(this.notes[i]);
    }
    return sounding;
  }

  /** Return the measure that sounds, or undefined. */
  measureAt(seconds) {
    const measure = this.byStart[countUpTo(this.measureStarts, seconds + 1e-6) - 1];
    return measure && seconds < measure.end + 0.5 ? measure : undefined;
  }

  /** Return the start of the next measure in a direction; without measures, that of the system. */
  nextStart(seconds, direction) {
    const starts = this.measureStarts.length ? this.measureStarts : this.systemStarts();
    if (direction > 0) return starts[countUpTo(starts, seconds + 0.02)] ?? this.endSec;
    const here = countUpTo(starts, seconds) - 1;
    // Shortly after a bar line, go to the one before.
    const back = here >= 0 && seconds - starts[here] < 0.35 ? here - 1 : here;
    return starts[back] ?? this.startSec;
  }

  systemStarts() {
    return this.runs.filter((run) => run.seconds.length > 3).map((run) => run.seconds[0]);
  }

  /** Return the beat within its measure, from 1; undefined where no beats are known. */
  beatAt(seconds) {
    const measure = this.measureAt(seconds);
    if (!measure || measure.beat === null || this.beats.length < 2) return undefined;
    return interpolate(seconds, this.beatSeconds, this.beats) - measure.beat + 1;
  }

  /** Return how probable the place at a second is to be right. */
  confidenceAt(seconds) {
    const { confidence, start, step } = this.frames;
    const frame = Math.floor((seconds - start) / step);
    return confidence[Math.min(Math.max(frame, 0), confidence.length - 1)];
  }

  /** Return the note whose head is at a place. */
  noteAt(page, x, y) {
    const isAt = ({ page: own, system, box: [x0, y0, x1, y1] }) => {
      const margin = HEAD_MARGIN * (this.systems[system]?.space ?? 8);
      const isInside = x >= x0 - margin && x <= x1 + margin && y >= y0 - margin && y <= y1 + margin;
      return own === page && isInside;
    };
    return this.notes.filter(isAt);
  }

  systemAt(page, x, y) {
    const own = this.systems.filter((system) => system.page === page);
    own.sort((a, b) => a.distance(x, y) - b.distance(x, y));
    return own[0];
  }

  /** Return all seconds at which a place sounds, first ones first. */
  secondsAt(page, x, y) {
    const heads = this.noteAt(page, x, y);
    if (heads.length) {
      return [...new Set(heads.map((note) => note.start))].sort((a, b) => a - b);
    }
    const system = this.systemAt(page, x, y);
    if (!system) return [];
    const { along } = system.locate(x, y);
    const tolerance = 4 * system.space;
    const runs = this.clickRuns
      .filter((run) => run.system === system.index)
      .map((run) => {
        const miss = Math.max(run.along[0] - along, along - run.along[run.along.length - 1], 0);
        return { miss, seconds: interpolate(along, run.along, run.seconds) };
      });
    const least = Math.min(...runs.map((run) => run.miss));
    const near = runs.filter((run) => run.miss <= Math.max(tolerance, least));
    return near.filter((run) => run.miss <= least + tolerance).map((run) => run.seconds);
  }

  /** Return the printed measure at a place. */
  measureBoxAt(page, x, y) {
    const system = this.systemAt(page, x, y);
    return this.measures.find(
      ({ page: own, system: line, box: [x0, , x1] }) =>
        own === page && line === system?.index && x >= x0 && x < x1,
    );
  }

  /** Return the second of this result that corresponds to a second of another one. */
  secondsLike(other, seconds) {
    if (other.recording.sound && other.recording.sound.key === this.recording.sound?.key) return seconds;
    const measure = other.measureAt(seconds);
    const own = measure
      && this.measures.find((each) => each.number === measure.number && each.pass === measure.pass);
    if (own) {
      const share = (seconds - measure.start) / Math.max(measure.end - measure.start, 1e-3);
      return own.start + Math.min(Math.max(share, 0), 1) * (own.end - own.start);
    }
    const { page, x, y } = other.placeAt(seconds);
    const same = this.pages.length === other.pages.length ? this.secondsAt(page, x, y)[0] : undefined;
    return same ?? this.startSec + (seconds - other.startSec) * (this.endSec / other.endSec);
  }
}
