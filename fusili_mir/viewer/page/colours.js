// Colours of the style sheet, for what is painted on a canvas.

/** Return a colour of the style sheet as it is now, in light or dark. */
export function colour(name) {
  const probe = document.createElement("span");
  probe.hidden = true;
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
