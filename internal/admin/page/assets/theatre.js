// Replays the drawings of elections. The drawing is complete without this script; here
// its parts appear in the order of time. Parts have the time, as a place from left to
// right, in data-x, and arrows their arrival in data-end.

const still = matchMedia("(prefers-reduced-motion: reduce)");
const fullMS = 9000; // how long the whole drawing plays at speed 1

// clamp returns v, but not less than low or more than high.
const clamp = (v, low, high) => Math.min(Math.max(v, low), high);

// partsOf returns the parts of a drawing with the numbers that are needed to show them
// half.
function partsOf(svg) {
  return [...svg.querySelectorAll("[data-x]")].map(el => {
    const part = { el, from: Number(el.dataset.x), until: Number(el.dataset.end || el.dataset.x), says: el.querySelector("title")?.textContent };
    const bar = el.matches("rect") ? el : el.querySelector("rect");
    const line = el.matches(".vote") ? el.querySelector("path") : null;
    const text = bar && el.querySelector("text");
    if (text) part.text = { el: text, until: Number(text.getAttribute("x")) + text.getComputedTextLength() };
    if (bar) part.bar = { el: bar, x: Number(bar.getAttribute("x")), width: Number(bar.getAttribute("width")) };
    if (line) {
      const [x1, y1, x2, y2] = line.getAttribute("d").match(/-?[\d.]+/g).map(Number);
      part.line = { el: line, d: line.getAttribute("d"), x1, y1, x2, y2, head: el.querySelector(".head") };
    }
    return part;
  });
}

// draw shows a part as it is at a place in time.
function draw(part, x) {
  part.el.classList.toggle("later", x < part.from);
  if (part.bar) part.bar.el.setAttribute("width", clamp(x - part.bar.x, 0.1, part.bar.width));
  part.text?.el.classList.toggle("later", x < part.text.until);
  if (!part.line?.head) return;
  const l = part.line, done = part.until > part.from ? clamp((x - part.from) / (part.until - part.from), 0, 1) : 1;
  l.head.classList.toggle("later", done < 1);
  l.el.setAttribute("d", done < 1 ? `M${l.x1} ${l.y1}L${l.x1 + (l.x2 - l.x1) * done} ${l.y1 + (l.y2 - l.y1) * done}` : l.d);
}

class Replay {
  constructor(section) {
    this.section = section;
    this.svg = section.querySelector("svg.theatre");
    this.stage = section.querySelector(".stage");
    this.now = section.querySelector(".now");
    this.controls = section.querySelector(".controls");
    this.parts = partsOf(this.svg);
    this.ticks = [...this.svg.querySelectorAll(".tick")].map(t => ({ at: Number(t.dataset.at), x: Number(t.getAttribute("x1")) }));
    this.head = this.svg.querySelector(".playhead");
    this.steps = [...new Set(this.parts.map(p => p.until))].sort((a, b) => a - b);
    this.first = this.steps[0] ?? 0;
    this.end = this.svg.viewBox.baseVal.width - 20;
    this.x = this.end;
    this.speed = 1;
    this.controls.hidden = false;
    this.controls.addEventListener("click", e => this.do(e.target.closest("[data-do]")?.dataset.do));
    this.controls.addEventListener("input", e => this.input(e.target));
    section.addEventListener("keydown", e => this.key(e));
    this.tell();
  }

  part(name) { return this.controls.querySelector(`[data-do=${name}]`); }

  do(what) {
    switch (what) {
      case "play": return this.frame || this.timer ? this.stop() : this.play();
      case "start": this.stop(); return this.show(this.first, true);
      case "end": this.stop(); return this.show(this.end, true);
      case "step": this.stop(); return this.step(1);
      case "back": this.stop(); return this.step(-1);
    }
  }

  input(field) {
    if (field.dataset.do === "speed") this.speed = Number(field.value);
    if (field.dataset.do !== "seek") return;
    this.stop();
    this.show(this.first + (this.end - this.first) * field.value / 1000, true);
  }

  // key handles keys on the drawing, and space and letters anywhere but on the controls
  // that use them.
  key(e) {
    if (e.ctrlKey || e.altKey || e.metaKey) return;
    const field = e.target.closest("input, select, summary, a, button");
    const keys = { k: "play", " ": "play", ArrowRight: "step", ArrowLeft: "back", Home: "start", End: "end" };
    const what = keys[e.key];
    if (!what || field && e.key !== "k" || field?.matches("select")) return;
    e.preventDefault();
    this.do(what);
  }

  step(by) {
    const next = by > 0 ? this.steps.find(s => s > this.x + 0.01) ?? this.end : this.steps.findLast(s => s < this.x - 0.01) ?? this.first;
    this.show(next, true);
  }

  play() {
    if (this.x >= this.end) this.show(this.first);
    this.part("play").textContent = "Pause";
    if (still.matches) {
      const next = () => {
        this.step(1);
        this.timer = this.x < this.end ? setTimeout(next, 1200 / this.speed) : 0;
        if (!this.timer) this.stop();
      };
      this.timer = setTimeout(next, 300);
      return;
    }
    let before = performance.now();
    const next = now => {
      this.show(Math.min(this.x + (now - before) * this.speed * (this.end - this.first) / fullMS, this.end));
      before = now;
      if (this.x < this.end) this.frame = requestAnimationFrame(next);
      else this.stop();
    };
    this.frame = requestAnimationFrame(next);
  }

  stop() {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
    this.frame = this.timer = 0;
    this.part("play").textContent = "Play";
  }

  // show shows the drawing as it is at a place in time. With told, it says what happens
  // there.
  show(x, told) {
    this.x = x;
    this.svg.classList.toggle("replay", x < this.end);
    for (const part of this.parts) draw(part, x);
    this.head.setAttribute("x1", x);
    this.head.setAttribute("x2", x);
    this.part("seek").value = Math.round(1000 * (x - this.first) / (this.end - this.first));
    const view = this.stage.clientWidth, at = x - this.stage.scrollLeft;
    if (at < 160 || at > view - 80) this.stage.scrollLeft = x - view * 0.6;
    this.tell();
    if (told) this.now.textContent = x >= this.end ? "The end." : this.parts.filter(p => p.says && Math.abs(p.until - x) < 0.01).map(p => p.says).join(". ");
    else if (this.now.textContent) this.now.textContent = "";
  }

  // tell shows the time.
  tell() {
    const i = this.ticks.findLastIndex(t => t.x <= this.x + 0.01);
    const tick = this.ticks[Math.max(i, 0)], next = this.ticks[i + 1];
    if (!tick) return;
    const at = next ? tick.at + (next.at - tick.at) * (this.x - tick.x) / (next.x - tick.x) : tick.at;
    this.controls.querySelector(".clock").textContent = `+${Math.floor(at)} ms`;
  }
}

document.querySelectorAll("[data-theatre]").forEach(section => new Replay(section));
