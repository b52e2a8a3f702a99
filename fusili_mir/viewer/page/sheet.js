// The pages of a score, and what is drawn over them: the cursor, sounding notes, doubtful places, anchors.

import { embeddedUrl } from "./embedded.js";

const SVG = "http://www.w3.org/2000/svg";
const NEAR = "150% 0px"; // pages so near to the window are decoded
const FOLLOW_AGAIN_MS = 3500; // after somebody scrolled
const LEAST_ZOOM = 0.3;
const MOST_ZOOM = 5;
const WIDEST_PX = 1100; // of a page at zoom 1

function draw(name, attributes, parent) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  parent?.append(element);
  return element;
}

export class Sheet {
  /** @param events `click`, `hover`, `leave` and `zoom`: called with places in pixels of a page. */
  constructor(scroller, list, events) {
    this.scroller = scroller;
    this.list = list;
    this.events = events;
    this.zoom = 1;
    this.follows = true;
    this.scrolledAt = -Infinity;
    this.urls = new Map();
    const options = { root: scroller, rootMargin: NEAR };
    this.nearby = new IntersectionObserver((entries) => this.#showNearby(entries), options);
    for (const event of ["wheel", "touchmove", "keydown"]) {
      const scrolled = (e) => {
        if (event !== "keydown" || /^(Page|Arrow(Up|Down))/.test(e.key)) this.scrolledAt = performance.now();
      };
      scroller.addEventListener(event, scrolled, { passive: true });
    }
    scroller.addEventListener("pointerdown", (e) => {
      if (e.target === scroller) this.scrolledAt = performance.now(); // the scroll bar
    });
    scroller.addEventListener("wheel", (e) => this.#wheel(e), { passive: false });
    new ResizeObserver(() => this.#layOut()).observe(scroller);
  }

  /** Show the pages of a result; pages that are shown already stay. */
  show(result) {
    const isSame = this.result
      && JSON.stringify(this.result.pages) === JSON.stringify(result.pages);
    this.result = result;
    if (!isSame) {
      this.nearby.disconnect();
      this.sheets = result.pages.map((page, index) => this.#sheet(page, index, result.pages.length));
      this.list.replaceChildren(...this.sheets.map((sheet) => sheet.figure));
      for (const { figure } of this.sheets) this.nearby.observe(figure);
      this.#layOut();
    }
    this.drawMarks();
  }

  #sheet(page, index, count) {
    const figure = document.createElement("figure");
    figure.className = "sheet";
    figure.dataset.page = index;
    figure.style.aspectRatio = `${page.width} / ${page.height}`;
    const image = document.createElement("img");
    image.alt = `Page ${index + 1} of ${count}`;
    image.draggable = false;
    image.decoding = "async";
    const overlay = draw("svg", {
      viewBox: `0 0 ${page.width} ${page.height}`,
      preserveAspectRatio: "none",
      "aria-hidden": "true",
    });
    const layers = {};
    for (const name of ["doubt", "loop", "hover", "band", "notes", "cursor", "anchors"]) {
      layers[name] = draw("g", { class: name }, overlay);
    }
    figure.append(image, overlay);
    const place = (e) => {
      const box = figure.getBoundingClientRect();
      const x = ((e.clientX - box.left) / box.width) * page.width;
      const y = ((e.clientY - box.top) / box.height) * page.height;
      return { page: index, x, y };
    };
    figure.addEventListener("click", (e) => this.events.click(place(e), e));
    figure.addEventListener("pointermove", (e) => this.events.hover(place(e), e));
    figure.addEventListener("pointerleave", () => this.events.leave());
    return { figure, image, overlay, layers, page };
  }

  async #showNearby(entries) {
    for (const { target, isIntersecting } of entries) {
      const sheet = this.sheets[Number(target.dataset.page)];
      if (!sheet || sheet.figure !== target) continue;
      sheet.isNear = isIntersecting;
      if (isIntersecting && !sheet.image.src) {
        const { picture, type } = sheet.page;
        if (!this.urls.has(picture)) this.urls.set(picture, embeddedUrl(picture, type));
        sheet.image.src = await this.urls.get(picture);
      }
    }
  }

  #layOut() {
    const style = getComputedStyle(this.scroller);
    const room = this.scroller.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    const width = Math.min(room, WIDEST_PX) * this.zoom;
    this.list.style.setProperty("--page-width", `${Math.max(80, Math.round(width))}px`);
  }

  /** Zoom, and keep what is in the middle of the window, or under the pointer, where it is. */
  setZoom(zoom, clientX, clientY) {
    const box = this.scroller.getBoundingClientRect();
    const [px, py] = [(clientX ?? box.left + box.width / 2) - box.left, (clientY ?? box.top + box.height / 2) - box.top];
    const before = this.list.getBoundingClientRect();
    const [u, v] = [
      (px + box.left - before.left) / before.width,
      (py + box.top - before.top) / before.height,
    ];
    this.zoom = Math.min(Math.max(zoom, LEAST_ZOOM), MOST_ZOOM);
    this.#layOut();
    const after = this.list.getBoundingClientRect();
    this.scroller.scrollLeft += after.left + u * after.width - box.left - px;
    this.scroller.scrollTop += after.top + v * after.height - box.top - py;
    this.events.zoom(this.zoom);
  }

  #wheel(e) {
    if (!e.ctrlKey && !e.metaKey) return;
    e.preventDefault();
    this.setZoom(this.zoom * Math.exp(-e.deltaY / 300), e.clientX, e.clientY);
  }

  /** Draw where the music is. */
  drawCursor(seconds) {
    const place = this.result.placeAt(seconds);
    const isAway = this.result.isElsewhere(seconds);
    const { system } = place;
    const { along } = system.locate(place.x, place.y);
    const above = 1.5 * system.space;
    const top = system.at(along, -above);
    const bottom = system.at(along, system.height + above);
    const sheet = this.sheets[place.page];
    if (this.cursorSheet !== sheet) {
      for (const name of ["band", "cursor", "notes"]) this.cursorSheet?.layers[name].replaceChildren();
      this.cursorSheet = sheet;
      this.band = draw("polygon", {}, sheet.layers.band);
      this.line = draw("line", {}, sheet.layers.cursor);
    }
    const half = 1.1 * system.space;
    const corners = [
      system.at(along - half, -above),
      system.at(along + half, -above),
      system.at(along + half, system.height + above),
      system.at(along - half, system.height + above),
    ];
    this.band.setAttribute("points", corners.map((corner) => corner.map((v) => v.toFixed(1))).join(" "));
    const ends = { x1: top[0], y1: top[1], x2: bottom[0], y2: bottom[1] };
    for (const [key, value] of Object.entries(ends)) this.line.setAttribute(key, value.toFixed(2));
    this.line.setAttribute("stroke-width", Math.max(2, system.space / 4.5).toFixed(1));
    for (const element of [this.band, this.line]) element.classList.toggle("away", isAway);
    this.#drawSounding(isAway ? [] : this.result.soundingAt(seconds), sheet);
    this.place = { ...place, sheet, top, bottom };
    return place;
  }

  #drawSounding(notes, sheet) {
    const key = notes.map((note) => note.index).join();
    const layer = sheet.layers.notes;
    if (key === this.soundingKey && layer.childElementCount === this.soundingCount) return;
    this.soundingKey = key;
    const here = notes.filter((note) => note.page === this.sheets.indexOf(sheet));
    layer.replaceChildren(...here.map(({ box: [x0, y0, x1, y1] }) => {
      const margin = 0.14 * (y1 - y0);
      return draw("rect", {
        x: x0 - margin,
        y: y0 - margin,
        width: x1 - x0 + 2 * margin,
        height: y1 - y0 + 2 * margin,
        rx: (y1 - y0) / 2,
      });
    }));
    this.soundingCount = here.length;
  }

  /** Bring the cursor into view, unless somebody has just scrolled elsewhere. */
  follow(isJump = false) {
    if (!this.place || (!this.follows && !isJump)) return;
    if (!isJump && performance.now() - this.scrolledAt < FOLLOW_AGAIN_MS) return;
    const { sheet, top, bottom } = this.place;
    const page = sheet.figure.getBoundingClientRect();
    const view = this.scroller.getBoundingClientRect();
    const scale = page.width / sheet.page.width;
    const y0 = page.top + top[1] * scale - view.top;
    const y1 = page.top + bottom[1] * scale - view.top;
    const x = page.left + top[0] * scale - view.left;
    const isAbove = y0 < 0.02 * view.height;
    const isBelow = y1 > 0.92 * view.height;
    const isAside = x < 0.06 * view.width || x > 0.94 * view.width;
    if (!isAbove && !isBelow && !isAside) return;
    if (this.isGliding && !isJump) return;
    const fits = y1 - y0 < 0.85 * view.height;
    const dy = isAbove || isBelow ? y0 - (fits ? Math.min(0.2 * view.height, (view.height - (y1 - y0)) / 2) : 8) : 0;
    const dx = isAside ? x - 0.25 * view.width : 0;
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.isGliding = true;
    setTimeout(() => { this.isGliding = false; }, 700);
    this.scroller.scrollBy({ top: dy, left: dx, behavior: calm ? "instant" : "smooth" });
  }

  /** Mark stretches of time on the pages: a list of polygons in a layer. */
  #markSpans(layerName, spans, shape) {
    for (const { layers } of this.sheets) layers[layerName].replaceChildren();
    for (const [from, to] of spans) {
      for (const run of this.result.runs) {
        const inside = run.along.filter((_, i) => run.seconds[i] >= from && run.seconds[i] <= to);
        if (inside.length < 2) continue;
        const system = this.result.systems[run.system];
        const points = shape(system, inside[0], inside[inside.length - 1]);
        draw("polygon", { points: points.map((p) => p.map((v) => v.toFixed(1))).join(" ") },
          this.sheets[system.page].layers[layerName]);
      }
    }
  }

  /** Mark doubtful places with a line below the system. */
  drawMarks() {
    this.#markSpans("doubt", this.result.doubtful, (system, from, to) => {
      const [y0, y1] = [system.height + 1.6 * system.space, system.height + 2 * system.space];
      return [system.at(from, y0), system.at(to, y0), system.at(to, y1), system.at(from, y1)];
    });
    this.soundingKey = undefined;
    this.cursorSheet = undefined;
    for (const { layers } of this.sheets) {
      for (const name of ["band", "cursor", "notes", "hover"]) layers[name].replaceChildren();
    }
  }

  /** Mark the stretch that is played over and over. */
  drawLoop(span) {
    this.#markSpans("loop", span ? [span] : [], (system, from, to) => {
      const [y0, y1] = [-1.5 * system.space, system.height + 1.5 * system.space];
      return [system.at(from, y0), system.at(to, y0), system.at(to, y1), system.at(from, y1)];
    });
  }

  /** Frame the note or measure that a click would play. */
  drawHover(target) {
    if (this.hovered === target) return;
    this.hovered = target;
    for (const { layers } of this.sheets) layers.hover.replaceChildren();
    if (!target) return;
    const [x0, y0, x1, y1] = target.box;
    const space = this.result.systems[target.system]?.space ?? 8;
    const margin = target.number === undefined ? 0.3 * space : space;
    draw("rect", {
      x: x0 - (target.number === undefined ? margin : 0),
      y: y0 - margin,
      width: x1 - x0 + (target.number === undefined ? 2 * margin : 0),
      height: y1 - y0 + 2 * margin,
      rx: 0.4 * space,
    }, this.sheets[target.page].layers.hover);
  }

  /** Draw flags at anchors: `{ page, x, y, system, selected }`. */
  drawAnchors(anchors) {
    for (const { layers } of this.sheets) layers.anchors.replaceChildren();
    for (const { x, y, system, isSelected } of anchors) {
      const { along } = system.locate(x, y);
      const [x0, y0] = system.at(along, -1.5 * system.space);
      const [x1, y1] = system.at(along, system.height + 1.5 * system.space);
      const group = draw("g", { class: isSelected ? "selected" : "" }, this.sheets[system.page].layers.anchors);
      draw("line", { x1: x0, y1: y0, x2: x1, y2: y1, "stroke-width": system.space / 6 }, group);
      const size = system.space;
      draw("path", { d: `M${x0} ${y0} l${1.6 * size} ${0.6 * size} l${-1.6 * size} ${0.6 * size} z` }, group);
    }
  }
}
