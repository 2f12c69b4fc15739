// Renews the parts of the page that are marked with data-live whenever the event stream
// says that something has changed. The server renders them again, and only what differs is
// changed in the document, so that focus, selection and scroll position stay.

const parts = () => document.querySelectorAll("[data-live]");
const link = document.getElementById("link");

// say shows the state of the stream beside the name of the server. It is a status for
// screen readers, so it changes only when the state does.
function say(kind, text) {
  if (link.textContent === text) return;
  link.className = "link " + kind;
  link.textContent = text;
}

// merge makes one element like another one.
function merge(old, now) {
  if (old.nodeType !== now.nodeType || old.nodeName !== now.nodeName || old.id !== now.id) {
    old.replaceWith(document.importNode(now, true));
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== now.data) old.data = now.data;
    return;
  }
  if (old.contains(document.activeElement) && old.matches("input, textarea, select, form, details")) return;
  for (const name of old.getAttributeNames()) if (!now.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  for (const { name, value } of now.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const olds = [...old.childNodes], news = [...now.childNodes];
  news.forEach((child, i) => i < olds.length ? merge(olds[i], child) : old.append(document.importNode(child, true)));
  olds.slice(news.length).forEach(child => child.remove());
}

// every is the shortest time between two renewals in ms: pages that are expensive for the
// server ask for a longer one.
const every = Math.max(0, ...[...parts()].map(part => Number(part.dataset.every || 0)));

// refreshMS is the time after which the page is renewed even if no event has come, because ages and charts
// change without one, and because a stream whose server has vanished looks like one without events.
const refreshMS = Math.max(15000, every);

// address is where the page is asked for. A page that shows the newest of something names what it shows now.
const address = document.querySelector("[data-address]")?.dataset.address ?? location.href;

const answerMS = 10000; // how long an answer may take
const retryMS = 3000; // the pause before the stream is opened again

let events, retry, planned = 0, busy = false, again = false, last = 0;

// renew plans to ask for the page again: now, or when the shortest time has passed. While one answer is awaited,
// others are not asked for.
function renew() {
  if (busy) { again = true; return; }
  if (!planned) planned = setTimeout(ask, Math.max(0, last + every - Date.now()));
}

async function ask() {
  planned = 0;
  busy = true;
  last = Date.now();
  try {
    const answer = await fetch(address, { headers: { Accept: "text/html" }, signal: AbortSignal.timeout(answerMS) });
    if (answer.redirected) say("lost", "not live: you are signed out; load the page again");
    else if (!answer.ok) say("lost", `not live: the server answers with status ${answer.status}`);
    else {
      show(await answer.text());
      if (events.readyState === EventSource.OPEN) say("live", "live");
    }
  } catch {
    say("lost", "not live: the server does not answer");
    if (!document.hidden) follow();
  }
  busy = false;
  if (again) { again = false; renew(); }
}

// show merges the parts of a new page into this one.
function show(text) {
  const now = new DOMParser().parseFromString(text, "text/html");
  for (const part of parts()) {
    const other = now.getElementById(part.id);
    if (other) merge(part, other);
  }
}

// follow opens the stream, in place of an old one. After some errors, such as the answer of a server that is starting,
// the browser does not open it again by itself.
function follow() {
  leave();
  events = new EventSource("/v1/events");
  events.addEventListener("ensemble", renew);
  events.addEventListener("error", () => {
    say("lost", "not live: no connection to the server, or too many open pages");
    if (events.readyState === EventSource.CLOSED) retry = setTimeout(follow, retryMS);
  });
}

function leave() {
  clearTimeout(retry);
  events?.close();
}

// A hidden page keeps no stream: browsers open only about six connections to a server, for all pages together.
function look() {
  if (document.hidden) return leave();
  follow();
  renew();
}

if (parts().length > 0) {
  document.addEventListener("visibilitychange", look);
  setInterval(() => { if (!document.hidden) renew(); }, refreshMS);
  if (!document.hidden) follow();
}
