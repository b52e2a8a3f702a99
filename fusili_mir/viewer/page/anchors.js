// Anchors: measures, notes or places whose seconds somebody has set by hand.

/** Name what an anchor holds, for people. */
export function anchorLabel(anchor) {
  if (anchor.measure !== undefined) return anchor.pass > 1 ? `${anchor.measure} (${anchor.pass})` : anchor.measure;
  if (anchor.note !== undefined) return anchor.label ?? "note";
  return `p. ${anchor.page + 1}`;
}

/** Name what an anchor holds, so that each thing has one anchor. */
export function anchorKey(anchor) {
  if (anchor.measure !== undefined) return `measure ${anchor.measure} ${anchor.pass}`;
  if (anchor.note !== undefined) return `note ${anchor.note}`;
  return `place ${anchor.page} ${Math.round(anchor.x)} ${Math.round(anchor.y)}`;
}

function csvField(value) {
  const text = value === undefined || value === null ? "" : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Write anchors as the table that `fusili-mir align --anchors` reads. */
export function anchorsCsv(anchors) {
  const names = ["measure", "pass", "note", "page", "x", "y", "second"];
  const rows = anchors.map((anchor) => names.map((name) => csvField(anchor[name])).join(","));
  return [names.join(","), ...rows, ""].join("\n");
}

export class Anchors {
  constructor(changed) {
    this.changed = changed;
    this.list = [];
    this.selected = undefined; // an anchor without a second of its own yet, or one of the list
  }

  load(list) {
    this.list = list.map((anchor) => ({ ...anchor }));
    this.selected = undefined;
  }

  find(key) {
    return this.list.find((anchor) => anchorKey(anchor) === key);
  }

  /** Set the second of a measure, note or place. */
  set(subject, second) {
    const anchor = { ...subject, second: Math.round(second * 1000) / 1000 };
    delete anchor.isCandidate;
    this.list = this.list.filter((each) => anchorKey(each) !== anchorKey(anchor));
    this.list.push(anchor);
    this.list.sort((a, b) => a.second - b.second);
    this.selected = anchor;
    this.changed();
  }

  remove(anchor) {
    const count = this.list.length;
    this.list = this.list.filter((each) => each !== anchor);
    if (this.selected === anchor) this.selected = undefined;
    if (this.list.length !== count) this.changed();
  }
}
