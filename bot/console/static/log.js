// The visible chat: draws what the stream brings and keeps the end in view.

import { localiseTimes } from "./page.js";

const byId = (id) => document.getElementById(id);
const scroller = byId("scroll");
const log = byId("log");
const status = byId("status");
const latest = byId("latest");
const notices = byId("notices");

const NEAR_END_PX = 120;
const NOTICE_MS = 8000;

let following = true;

function toEnd() {
  scroller.scrollTop = scroller.scrollHeight;
}

function settleView() {
  if (following) toEnd();
  latest.hidden = following;
}

export function showEnd() {
  following = true;
  settleView();
}

scroller.addEventListener("scroll", () => {
  following = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR_END_PX;
  if (following) latest.hidden = true;
});
latest.addEventListener("click", showEnd);
new ResizeObserver(() => following && toEnd()).observe(scroller);

function parse(html) {
  const template = document.createElement("template");
  template.innerHTML = html; // escaped by the server; the page's policy runs no inline script
  return [...template.content.children];
}

function dress(element) {
  localiseTimes(element);
  for (const code of element.querySelectorAll("pre")) {
    const holder = document.createElement("div");
    holder.className = "code";
    code.replaceWith(holder);
    const copy = document.createElement("button");
    copy.type = "button";
    copy.className = "copy";
    copy.textContent = "Copy";
    holder.append(code, copy);
  }
  return element;
}

const drawn = new WeakMap(); // element -> the HTML it was made from

function upsert(fresh) {
  const old = log.querySelector(`:scope > [data-id="${CSS.escape(fresh.dataset.id)}"]`);
  const html = fresh.outerHTML;
  if (old && drawn.get(old) === html) return old;
  const element = dress(fresh);
  drawn.set(element, html);
  // What is live stands last: an answer that grew above a card is found below it when it is done.
  if (old?.classList.contains("preview") && old !== log.lastElementChild) {
    old.remove();
    log.append(element);
  } else if (old) old.replaceWith(element);
  else log.append(element);
  return element;
}

function drawMessage({ html }) {
  for (const element of parse(html)) upsert(element);
  settleView();
}

function drawHistory({ html, waiting }) {
  // In the order of the history; what it does not know yet, such as a preview, stays at the end.
  const known = parse(html).map(upsert);
  if (known.some((element, place) => log.children[place] !== element)) log.prepend(...known);
  showStatus({ text: "" });
  showWaiting({ text: waiting });
  settleView();
}

function showStatus({ text }) {
  status.textContent = text;
  status.hidden = !text;
  settleView();
}

function showNotice({ html }) {
  const element = parse(html)[0];
  notices.append(element);
  setTimeout(() => element.remove(), NOTICE_MS);
}

function showWaiting({ text }) {
  const count = byId("waiting");
  count.textContent = text;
  count.hidden = text === "0";
}

function setTitle({ text }) {
  document.title = `${text} · Lodger`;
  document.querySelector(".bar h1").textContent = text;
  const link = document.querySelector(".chats a[aria-current]");
  if (link) link.textContent = text;
}

// By the names of the stream's events.
export const draw = {
  history: drawHistory,
  message: drawMessage,
  status: showStatus,
  notice: showNotice,
  title: setTitle,
  waiting: showWaiting,
};

// What the page came with is dressed like what comes later.
for (const element of log.children) {
  drawn.set(element, element.outerHTML);
  dress(element);
}
toEnd();
