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

let busy = false, again = false, last = 0;

// every is the shortest time between two renewals in ms: pages that are expensive for the
// server ask for a longer one.
const every = Math.max(0, ...[...parts()].map(part => Number(part.dataset.every || 0)));

// renew asks for the page again. While one answer is awaited, others are not asked for.
async function renew() {
  if (busy) { again = true; return; }
  if (Date.now() - last < every) return;
  busy = true;
  last = Date.now();
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (answer.ok) {
      const now = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of parts()) {
        const other = now.getElementById(part.id);
        if (other) merge(part, other);
      }
      say("live", "live");
    }
  } catch { say("lost", "connection lost"); }
  busy = false;
  if (again) { again = false; renew(); }
}

function follow() {
  const events = new EventSource("/v1/events");
  events.addEventListener("open", () => say("live", "live"));
  events.addEventListener("ensemble", () => { if (!document.hidden) renew(); });
  events.addEventListener("error", () => say("lost", "not live: no connection to the server, or too many open pages"));
  document.addEventListener("visibilitychange", () => { if (!document.hidden) renew(); });
}

if (parts().length > 0) follow();
