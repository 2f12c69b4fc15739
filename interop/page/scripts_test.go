package page

// accessibleScript returns what is wrong with the page for people who use a screen reader.
const accessibleScript = `(() => {
	const faults = [];
	const say = (what, e) => faults.push(what + ": " + e.outerHTML.slice(0, 120));
	const named = e => {
		const by = e.getAttribute("aria-labelledby");
		const label = e.labels && e.labels.length ? e.labels[0].textContent : "";
		const text = by ? by.split(" ").map(id => (document.getElementById(id) || {}).textContent || "").join(" ") :
			e.getAttribute("aria-label") || label || e.textContent || e.getAttribute("alt") || e.title;
		return (text || "").trim() !== "";
	};
	for (const landmark of ["header", "main", "nav", "footer"])
		if (!document.querySelector(landmark)) faults.push("there is no " + landmark);
	if (!document.documentElement.lang || !document.title) faults.push("the page has no language or no title");
	const levels = [...document.querySelectorAll("h1, h2, h3, h4")].map(h => Number(h.tagName[1]));
	if (levels.filter(l => l === 1).length !== 1) faults.push("headings of the first level: " + levels.filter(l => l === 1).length);
	levels.forEach((l, i) => { if (i > 0 && l > levels[i - 1] + 1) faults.push("a heading of level " + l + " follows one of level " + levels[i - 1]) });
	for (const e of document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, nav, section, [role=region]"))
		if (!named(e) && !(e.tagName === "SECTION" && e.querySelector("h2"))) say("no name", e);
	for (const e of document.querySelectorAll("img")) if (!e.hasAttribute("alt")) say("no alt", e);
	for (const e of document.querySelectorAll("table")) if (!e.caption || !e.querySelector("th[scope]")) say("no caption or no scope", e);
	const ids = [...document.querySelectorAll("[id]")].map(e => e.id);
	for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) faults.push("the id " + id + " is used twice");
	for (const e of document.querySelectorAll("[aria-labelledby]"))
		for (const id of e.getAttribute("aria-labelledby").split(" "))
			if (!document.getElementById(id)) say("the label " + id + " is missing", e);
	return faults;
})()`

// contrastScript returns the visible texts whose contrast is too low.
const contrastScript = `(() => {
	const parse = c => c.match(/[\d.]+/g).map(Number);
	const light = ([r, g, b]) => { const f = v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4 }; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b) };
	const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c } return [255, 255, 255] };
	const low = [];
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walk.nextNode()) {
		const e = walk.currentNode.parentElement;
		if (!walk.currentNode.data.trim() || !e.checkVisibility() || e.closest(".hidden, .skip")) continue;
		const a = light(parse(getComputedStyle(e).color)), b = light(behind(e));
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < 4.5) low.push(walk.currentNode.data.trim().slice(0, 40) + " has the contrast " + ratio.toFixed(2));
	}
	return low;
})()`
