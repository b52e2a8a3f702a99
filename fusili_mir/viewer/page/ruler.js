// The measures below the waveform, with doubtful stretches and those in which something else sounds.

import { colour } from "./colours.js";

const LEAST_LABEL_PX = 30;
const REACH_PX = 7; // how near to a bar line a pointer is on it

export class Ruler {
  /** @param events `seek(seconds)` and `moved(measure, seconds)`. */
  constructor(canvas, sound, events) {
    this.canvas = canvas;
    this.sound = sound;
    this.events = events;
    new ResizeObserver(() => this.draw()).observe(canvas);
    canvas.addEventListener("pointerdown", (e) => this.#press(e));
    canvas.addEventListener("pointermove", (e) => this.#move(e));
    for (const event of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(event, (e) => this.#release(e, event === "pointerup"));
    }
  }

  #secondsOf(e) {
    const box = this.canvas.getBoundingClientRect();
    const [from, to] = this.sound.visible();
    return from + ((e.clientX - box.left) / box.width) * (to - from);
  }

  #barLineAt(e) {
    const [from, to] = this.sound.visible();
    const seconds = this.#secondsOf(e);
    const reach = (REACH_PX / this.canvas.clientWidth) * (to - from);
    const measures = this.sound.result.measures.filter((each) => Math.abs(each.start - seconds) <= reach);
    measures.sort((a, b) => Math.abs(a.start - seconds) - Math.abs(b.start - seconds));
    return measures[0];
  }

  #press(e) {
    if (e.button !== 0) return;
    const measure = this.isMovable ? this.#barLineAt(e) : undefined;
    if (!measure) {
      this.events.seek(this.#secondsOf(e));
      return;
    }
    this.dragged = { measure, seconds: measure.start };
    this.canvas.setPointerCapture(e.pointerId);
  }

  #move(e) {
    this.canvas.style.cursor = this.isMovable && (this.dragged || this.#barLineAt(e)) ? "ew-resize" : "pointer";
    if (!this.dragged) return;
    this.dragged.seconds = this.#secondsOf(e);
    this.dragged.hasMoved = true;
    this.draw();
  }

  #release(e, isDone) {
    if (!this.dragged) return;
    const { measure, seconds, hasMoved } = this.dragged;
    this.dragged = undefined;
    if (isDone && hasMoved) this.events.moved(measure, seconds);
    else if (isDone) this.events.picked(measure);
    this.draw();
  }

  draw() {
    const { canvas, sound } = this;
    const { result } = sound;
    if (!result) return;
    const scale = devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    canvas.width = Math.max(1, Math.round(width * scale));
    canvas.height = Math.max(1, Math.round(height * scale));
    const paint = canvas.getContext("2d");
    paint.scale(scale, scale);
    const style = getComputedStyle(canvas);
    const [from, to] = sound.visible();
    const x = (seconds) => ((seconds - from) / (to - from)) * width;
    const fill = (spans, name) => {
      paint.fillStyle = colour(name);
      for (const [start, end] of spans) paint.fillRect(x(start), 0, Math.max(1, x(end) - x(start)), 4);
    };
    fill(result.elsewhere, "--away");
    fill(result.doubtful, "--doubt");
    paint.font = `11px ${style.fontFamily}`;
    paint.textBaseline = "alphabetic";
    const [line, quiet, accent] = ["--line", "--quiet", "--accent"].map(colour);
    let free = -Infinity;
    for (const measure of result.byStart) {
      const isDragged = this.dragged?.measure === measure;
      const at = x(isDragged ? this.dragged.seconds : measure.start);
      if (at < -40 || at > width + 40) continue;
      paint.fillStyle = isDragged ? accent : line;
      paint.fillRect(Math.round(at), 0, isDragged ? 2 : 1, 7);
      if (at >= free || isDragged) {
        paint.fillStyle = isDragged ? accent : quiet;
        paint.fillText(measure.number, at + 3, height - 4);
        paint.fillStyle = line;
        paint.fillRect(Math.round(at), 0, 1, height);
        free = at + Math.max(LEAST_LABEL_PX, paint.measureText(measure.number).width + 12);
      }
    }
    if (!result.measures.length) this.#drawSeconds(paint, x, from, to, height);
  }

  #drawSeconds(paint, x, from, to, height) {
    const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800];
    const step = steps.find((each) => x(from + each) >= 56) ?? 3600;
    const [line, quiet] = ["--line", "--quiet"].map(colour);
    for (let second = Math.ceil(from / step) * step; second < to; second += step) {
      paint.fillStyle = line;
      paint.fillRect(Math.round(x(second)), 0, 1, height);
      paint.fillStyle = quiet;
      const minutes = Math.floor(second / 60);
      paint.fillText(`${minutes}:${String(Math.round(second % 60)).padStart(2, "0")}`, x(second) + 3, height - 4);
    }
  }
}
