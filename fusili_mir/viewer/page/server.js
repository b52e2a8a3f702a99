// The program that serves this page, if there is one: it decodes again and saves.

const POLL_MS = 300;

let newest = 0;

/** Ask the server to do something; undefined if another question came after this one. */
export async function askServer(action, question) {
  newest += 1;
  const own = newest;
  let answer;
  try {
    const response = await fetch(action, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(question),
    });
    answer = response.ok || response.status === 409
      ? await response.json()
      : { error: `The server refused (${response.status}).` };
  } catch {
    answer = { error: "The server is gone; start fusili-mir view again." };
  }
  return own === newest ? answer : undefined;
}

/** Wait until a condition on the states of all results holds; undefined if the server is gone. */
export async function whenServer(condition) {
  for (;;) {
    try {
      const states = await (await fetch("state")).json();
      if (condition(states)) return states;
    } catch {
      return undefined;
    }
    await new Promise((resolve) => { setTimeout(resolve, POLL_MS); });
  }
}
