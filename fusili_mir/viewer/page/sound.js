// The recording: playing it, its waveform, its measures below, and the stretch that is repeated.

import { colour } from "./colours.js";
import { embeddedUrl, unpackPeaks } from "./embedded.js";

const MOST_PX_PER_SEC = 400;

export class Sound {
  /** @param events `time`, `play`, `pause`, `error`, `view`, `loop`. */
  constructor(container, nonce, events) {
    this.container = container;
    this.nonce = nonce;
    this.events = events;
    this.rate = 1;
    this.loop = null;
    this.media = new Audio();
    this.media.preload = "auto";
    this.media.preservesPitch = true;
    this.silentTime = 0; // where we are if nothing can be played
    this.media.addEventListener("play", () => events.play());
    this.media.addEventListener("pause", () => events.pause());
    this.media.addEventListener("seeked", () => events.time());
    this.media.addEventListener("timeupdate", () => this.#repeat());
    this.media.addEventListener("loadedmetadata", () => {
      this.media.playbackRate = this.rate;
      if (this.pending !== undefined) this.media.currentTime = this.pending;
      this.pending = undefined;
    });
    this.media.addEventListener("error", () => {
      if (!this.media.getAttribute("src")) return;
      this.isMute = true;
      events.error("This browser cannot play the recording.");
    });
    container.addEventListener("wheel", (e) => this.#wheel(e), { passive: false });
  }

  /** Show a result's recording, and go to a second of it. */
  async show(result, beside, seconds) {
    const { sound, peaks, durationSec, startSec } = result.recording;
    this.result = result;
    this.startSec = startSec;
    this.durationSec = durationSec;
    const isSame = this.key !== undefined && this.key === sound?.key;
    if (!isSame) {
      this.key = sound?.key;
      this.isMute = !sound;
      this.pending = seconds - startSec;
      this.silentTime = this.pending;
      if (sound) {
        const name = beside[sound.key];
        if (this.url) URL.revokeObjectURL(this.url);
        this.url = name ? undefined : await embeddedUrl(sound.key, sound.type);
        this.media.src = name ? encodeURIComponent(name) : this.url;
      } else {
        this.media.removeAttribute("src");
        this.events.error("This page came without a recording; places and times can still be looked at.");
      }
      this.#drawWave(unpackPeaks(peaks), durationSec);
    } else {
      this.seek(seconds);
    }
    this.setLoop(null);
  }

  #drawWave(peaks, durationSec) {
    this.wave?.destroy();
    this.regions = WaveSurfer.Regions.create();
    this.wave = WaveSurfer.create({
      container: this.container,
      cspNonce: this.nonce,
      height: "auto",
      peaks: [peaks],
      duration: durationSec,
      waveColor: colour("--wave"),
      progressColor: colour("--wave-played"),
      cursorColor: colour("--accent"),
      cursorWidth: 2,
      normalize: false,
      interact: true,
      dragToSeek: true,
      hideScrollbar: false,
      autoScroll: true,
      autoCenter: false,
      plugins: [this.regions],
    });
    // The waveform only shows: it has a media element of its own without a source.
    this.wave.on("interaction", (time) => this.events.seek(this.startSec + time));
    for (const event of ["scroll", "zoom", "redraw", "ready"]) this.wave.on(event, () => this.events.view());
    this.regions.on("region-updated", (region) => {
      if (region.id === "loop") {
        this.loop = [this.startSec + region.start, this.startSec + region.end];
        this.events.loop(this.loop);
      } else {
        this.events.moved(region.id, this.startSec + region.start);
      }
    });
    this.regions.on("region-clicked", (region, e) => {
      if (region.id !== "loop") {
        e.stopPropagation();
        this.events.picked(region.id);
      }
    });
  }

  /** Take over the colours of a theme. */
  recolour() {
    this.wave?.setOptions({
      waveColor: colour("--wave"),
      progressColor: colour("--wave-played"),
      cursorColor: colour("--accent"),
    });
  }

  /** Return the seconds between which the waveform is seen. */
  visible() {
    if (!this.wave) return [this.startSec, this.startSec + this.durationSec];
    const whole = this.wave.getWrapper().clientWidth || 1;
    const from = (this.wave.getScroll() / whole) * this.durationSec;
    const length = (this.wave.getWidth() / whole) * this.durationSec;
    return [this.startSec + from, this.startSec + Math.min(from + length, this.durationSec)];
  }

  zoomWave(factor) {
    const least = this.wave.getWidth() / this.durationSec;
    const now = (this.wave.getWrapper().clientWidth || 1) / this.durationSec;
    const next = Math.min(Math.max(now * factor, least), Math.max(MOST_PX_PER_SEC, least));
    this.wave.zoom(next <= least * 1.001 ? 0 : next);
    this.wave.setScrollTime(Math.max(0, this.seconds - this.startSec - this.wave.getWidth() / next / 2));
    this.events.view();
  }

  #wheel(e) {
    if (!e.ctrlKey && !e.metaKey) return;
    e.preventDefault();
    this.zoomWave(Math.exp(-e.deltaY / 300));
  }

  get seconds() {
    if (this.isMute) return this.startSec + this.silentTime;
    return this.startSec + (this.pending ?? this.media.currentTime);
  }

  get isPlaying() {
    return !this.media.paused;
  }

  seek(seconds) {
    const time = Math.min(Math.max(seconds - this.startSec, 0), this.durationSec);
    this.silentTime = time;
    if (!this.isMute) {
      if (this.media.readyState === 0) this.pending = time;
      else this.media.currentTime = time;
    }
    if (this.loop && (seconds < this.loop[0] - 0.01 || seconds >= this.loop[1])) this.setLoop(null);
    this.events.time();
  }

  async play() {
    if (this.isMute) return;
    try {
      await this.media.play();
    } catch (error) {
      if (error.name === "NotAllowedError") this.events.error("Press Space or the play button to hear it.");
    }
  }

  toggle() {
    if (this.isPlaying) this.media.pause();
    else this.play();
  }

  setRate(rate) {
    this.rate = Math.min(Math.max(Math.round(rate * 100) / 100, 0.25), 2);
    this.media.defaultPlaybackRate = this.rate;
    this.media.playbackRate = this.rate;
    this.media.preservesPitch = true;
  }

  /** Repeat a stretch, from second to second; null for none. */
  setLoop(span) {
    this.loop = span;
    this.regions?.getRegions().filter((region) => region.id === "loop").forEach((region) => region.remove());
    if (span) {
      this.regions.addRegion({
        id: "loop",
        start: span[0] - this.startSec,
        end: span[1] - this.startSec,
        drag: false,
        resize: true,
      });
    }
    this.events.loop(span);
  }

  /** Show what can be dragged: `{ id, seconds, label, isSelected, isAnchor }`. */
  setMarkers(markers) {
    this.regions?.getRegions().filter((region) => region.id !== "loop").forEach((region) => region.remove());
    for (const { id, seconds, label, isSelected, isAnchor } of markers) {
      const content = document.createElement("span");
      content.textContent = label;
      const region = this.regions.addRegion({ id, start: seconds - this.startSec, content, drag: true, resize: false });
      region.element?.part.add(isSelected ? "selected" : "unselected", isAnchor ? "anchor" : "candidate");
    }
  }

  /** Keep the repeated stretch and the waveform up to date; called for each picture while it plays. */
  tick() {
    this.#repeat();
    this.wave?.setTime(this.seconds - this.startSec);
  }

  #repeat() {
    if (this.loop && this.isPlaying && this.seconds >= this.loop[1] - 0.005) {
      this.media.currentTime = this.loop[0] - this.startSec;
    }
  }
}
