// The event stream of the chat: follows it, tells when it is lost, finds it again.

import { draw } from "./log.js";

const connection = document.getElementById("connection");
const url = document.getElementById("composer").dataset.events;

const RETRY_MS = 2000;
const SLOW_MS = 1200;

let source = null;
let slow = 0;

function say(text) {
  connection.textContent = text;
  connection.hidden = !text;
}

export function follow() {
  source?.close();
  source = new EventSource(url);
  for (const [name, act] of Object.entries(draw)) {
    source.addEventListener(name, (event) => act(JSON.parse(event.data)));
  }
  source.addEventListener("history", () => {
    clearTimeout(slow);
    slow = 0;
    say("");
  });
  source.addEventListener("error", () => {
    // A short gap heals unseen; a longer one is told.
    slow ||= setTimeout(() => say("Connection lost. Reconnecting…"), SLOW_MS);
    if (source.readyState === EventSource.CLOSED) setTimeout(findOut, RETRY_MS);
  });
}

async function findOut() {
  try {
    const answer = await fetch("/session", { headers: { accept: "application/json" } });
    if (answer.status === 401) {
      clearTimeout(slow);
      say("Signed out. Open a new link from the host to go on.");
      return;
    }
  } catch {
    // The host is away; the next attempt will tell.
  }
  if (!document.hidden) follow();
}

// A hidden page leaves its connection to others: browsers allow only a few to one host. What it
// misses comes with the history when it is seen again.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) source?.close();
  else follow();
});
window.addEventListener("pagehide", () => source?.close());
window.addEventListener("pageshow", (event) => event.persisted && follow());
