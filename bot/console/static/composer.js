// What a person does in the chat: writes, sends, presses buttons.

import { showEnd } from "./log.js";

const composer = document.getElementById("composer");
const box = document.getElementById("text");
const error = document.getElementById("error");
const log = document.getElementById("log");

const csrf = composer.elements.csrf.value;
let sending = false;
let tried = null; // the text that was sent under the present key

function complain(text) {
  error.textContent = text;
  error.hidden = !text;
}

async function post(url, fields) {
  const answer = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify({ csrf, ...fields }),
  });
  if (answer.ok) return "";
  const body = await answer.json().catch(() => ({}));
  return body.error || "Something broke. The host's log says what.";
}

async function attempt(url, fields) {
  try {
    return await post(url, fields);
  } catch {
    return "The host cannot be reached. Try again.";
  }
}

function newKey() {
  return `say-${Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

composer.addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = box.value;
  if (sending || !text.trim()) return;
  sending = true;
  composer.setAttribute("aria-busy", "true");
  // A text keeps its key until it is stored, so that however often it is tried it counts once;
  // another text gets another key, or it would be taken for the first.
  const key = composer.elements.key;
  if (tried !== null && tried !== text) key.value = newKey();
  tried = text;
  const problem = await attempt(composer.action, { text, key: key.value });
  complain(problem);
  if (!problem) {
    key.value = newKey();
    tried = null;
    box.value = box.value.startsWith(text) ? box.value.slice(text.length) : box.value;
    fit();
    showEnd();
  }
  composer.removeAttribute("aria-busy");
  sending = false;
  box.focus();
});

box.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  composer.requestSubmit();
});

function fit() {
  if (CSS.supports("field-sizing", "content")) return;
  box.rows = Math.min(10, box.value.split("\n").length);
}
box.addEventListener("input", fit);

document.addEventListener("click", (event) => {
  const suggestion = event.target.closest("[data-suggest]");
  if (suggestion) {
    box.value = suggestion.dataset.suggest;
    fit();
    box.focus();
  }
  const copy = event.target.closest(".copy");
  if (copy) copyCode(copy);
});

async function copyCode(button) {
  await navigator.clipboard.writeText(button.parentElement.querySelector("pre").textContent);
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 2000);
}

log.addEventListener("submit", async (event) => {
  const form = event.target.closest("form.press");
  if (!form) return;
  event.preventDefault();
  const buttons = [...form.querySelectorAll("button")];
  buttons.forEach((button) => (button.disabled = true));
  const problem = await attempt(form.action, { token: event.submitter.value, card: form.elements.card.value });
  buttons.forEach((button) => (button.disabled = false));
  complain(problem);
  if (!problem) box.focus();
});

document.getElementById("latest").addEventListener("click", () => box.focus());
fit();
