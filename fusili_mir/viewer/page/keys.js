// The keyboard.

/** Keys and what they do, for the help. */
export const KEYS = [
  ["Space", "play or pause"],
  ["← →", "previous or next measure; with Shift one second"],
  ["+ −", "faster or slower, at the same pitch; 0 for the original tempo"],
  ["L", "repeat from this measure; again: up to this measure; again: no longer"],
  ["Z, Shift+Z", "larger or smaller pages (also Ctrl and the wheel)"],
  ["W, Shift+W", "larger or smaller waveform"],
  ["R", "next recording"],
  ["F", "pages follow the music, or not"],
  ["D", "dark, light, or as the system"],
  ["C", "correct: set anchors"],
  ["T", "while correcting: tap at each downbeat"],
  ["A", "while correcting: what is selected, or nearest, sounds now"],
  ["Delete", "while correcting: remove the selected anchor"],
  ["?", "this help"],
];

/** Call actions by name for the keys that are pressed anywhere but in a field. */
export function listenToKeys(actions) {
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const { target } = e;
    const isField = target instanceof Element
      && target.closest("select, textarea, input:not([type=range]), dialog");
    if (isField) return;
    const isSlider = target instanceof Element && target.closest("input[type=range]");
    const isButton = target instanceof Element && target.closest("button, a, summary");
    const byKey = {
      " ": isButton ? undefined : () => actions.toggle(),
      ArrowLeft: isSlider ? undefined : () => (e.shiftKey ? actions.skip(-1) : actions.step(-1)),
      ArrowRight: isSlider ? undefined : () => (e.shiftKey ? actions.skip(1) : actions.step(1)),
      Home: () => actions.goToStart(),
      End: () => actions.goToEnd(),
      "+": () => actions.changeRate(0.05),
      "=": () => actions.changeRate(0.05),
      "-": () => actions.changeRate(-0.05),
      0: () => actions.changeRate(null),
      l: () => actions.markLoop(),
      z: () => actions.zoom(e.shiftKey ? 1 / 1.2 : 1.2),
      w: () => actions.zoomWave(e.shiftKey ? 1 / 1.5 : 1.5),
      r: () => actions.nextResult(),
      f: () => actions.toggleFollow(),
      d: () => actions.nextTheme(),
      c: () => actions.toggleCorrecting(),
      t: () => actions.tap(),
      a: () => actions.drop(),
      Delete: () => actions.remove(),
      Backspace: () => actions.remove(),
      "?": () => actions.help(),
      Escape: () => actions.escape(),
    };
    const action = byKey[e.key.length === 1 ? e.key.toLowerCase() : e.key];
    if (!action) return;
    e.preventDefault();
    action();
  });
}
