// Pictures and sounds that are inside the page, as addresses that elements can show.

/** Return an address for embedded content; nothing is decoded before it is asked for. */
export async function embeddedUrl(key, type) {
  const element = document.getElementById(`embedded-${key}`);
  const binary = atob(element.textContent);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  let blob = new Blob([bytes], { type });
  if ("packed" in element.dataset) {
    const unpacked = blob.stream().pipeThrough(new DecompressionStream("gzip"));
    blob = new Blob([await new Response(unpacked).arrayBuffer()], { type });
  }
  return URL.createObjectURL(blob);
}

/** Return bytes in base64 as numbers from 0 to 1. */
export function unpackPeaks(text) {
  const binary = atob(text);
  const peaks = new Float32Array(Math.max(binary.length, 2));
  for (let i = 0; i < binary.length; i += 1) peaks[i] = binary.charCodeAt(i) / 255;
  return peaks;
}
