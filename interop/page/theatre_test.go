package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// hidden counts the parts of the drawing that the replay has not reached.
const hidden = `document.querySelectorAll("svg.theatre .later").length`

// place is the point in time that the replay has reached: the x coordinate of the playhead.
const place = `Number(document.querySelector(".playhead").getAttribute("x1"))`

// electedAnew kills the leader and returns a server that follows the next leader.
func electedAnew(t *testing.T) *member {
	t.Helper()
	all := servers(t)
	leads, _ := leader(t, all)
	leads.kill(t)
	var others []*member
	for _, m := range all {
		if m != leads {
			others = append(others, m)
		}
	}
	_, follows := leader(t, others)
	return follows
}

// TestElectionIsReplayed shows that the page draws the election after the death of a leader, with the records of both
// servers, and that clicks and keys replay it.
func TestElectionIsReplayed(t *testing.T) {
	b := browser(t)
	b.open(electedAnew(t), "/elections")
	b.shows("It ended because")
	b.shows("votes that both ends recorded")
	if n := eval[int](b, hidden); n != 0 {
		t.Errorf("%d parts are hidden before the replay", n)
	}
	b.click("[data-do=start]")
	b.do("see that later parts are hidden", poll(hidden+` > 10`))
	b.click("[data-do=step]")
	b.do("read what happens", poll(`document.querySelector(".now").textContent.startsWith("Server ")`))
	before := eval[float64](b, place)
	b.click("[data-do=step]")
	b.click("[data-do=step]")
	if x := eval[float64](b, place); x <= before {
		t.Errorf("two steps lead from %v to %v", before, x)
	}
	b.do("play faster", script(`const speed = document.querySelector("[data-do=speed]"); speed.value = "4"; speed.dispatchEvent(new Event("input", { bubbles: true }))`))
	b.click("[data-do=play]")
	b.do("see the end", poll(hidden+` === 0 && document.querySelector("[data-do=play]").textContent === "Play"`))
	b.do("go to the start by a key", chromedp.Focus(".stage"), chromedp.KeyEvent(kb.Home), poll(hidden+` > 10`))
	b.do("play by a key", chromedp.KeyEvent("k"), poll(`document.querySelector("[data-do=play]").textContent === "Pause"`))
	b.do("pause by a key", chromedp.KeyEvent("k"), poll(`document.querySelector("[data-do=play]").textContent === "Play"`))
	b.do("go to the end by a key", chromedp.KeyEvent(kb.End), poll(hidden+` === 0`))
	b.do("step back by a key", chromedp.KeyEvent(kb.ArrowLeft), poll(hidden+` > 0`))
}

// TestElectionsSideBySide shows that a click compares two elections, each with its own replay, and that the table of
// an election has as many rows as the page says.
func TestElectionsSideBySide(t *testing.T) {
	b := browser(t)
	b.open(electedAnew(t), "/elections")
	b.follow("a[href*='right=']")
	b.do("see two drawings", poll(`document.querySelectorAll("svg.theatre").length === 2`))
	b.click("[aria-labelledby=right-heading] [data-do=start]")
	if l, r := eval[int](b, `document.querySelectorAll("#left-title ~ * .later, #left-title ~ .later").length`), eval[int](b, hidden); l != 0 || r == 0 {
		t.Errorf("%d parts are hidden on the left, %d in all", l, r)
	}
	b.click("[aria-labelledby=left-heading] summary")
	rows := eval[int](b, `document.querySelectorAll("[aria-labelledby=left-heading] tbody tr").length`)
	if says := eval[int](b, `Number(document.querySelector("[aria-labelledby=left-heading] summary").textContent.match(/[0-9]+/)[0])`); rows == 0 || says != rows {
		t.Errorf("the table has %d rows, the page says %d", rows, says)
	}
}

// TestListOfElectionsGrows shows that an open page lists a further election, and still marks the one that it draws.
func TestListOfElectionsGrows(t *testing.T) {
	all := servers(t)
	leads, follows := leader(t, all)
	b := browser(t)
	b.open(follows, "/elections")
	b.do("wait for the stream", poll(isLive))
	const marked = `document.querySelector("#elections tr.self a").getAttribute("href")`
	before := eval[string](b, marked)
	rows := eval[int](b, `document.querySelectorAll("#elections tbody tr").length`)
	leads.kill(t)
	b.do("see the next election", poll(fmt.Sprintf(`document.querySelectorAll("#elections tbody tr").length > %d`, rows)))
	if now := eval[string](b, marked); now != before {
		t.Errorf("the page draws %s and marks %s", before, now)
	}
}

// TestReplayWithoutMotion shows that a replay jumps from one event to the next if the system asks for reduced motion.
func TestReplayWithoutMotion(t *testing.T) {
	b := browser(t)
	b.do("want no motion", call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: "reduce"}}}))
	b.open(electedAnew(t), "/elections")
	b.do("record where the replay stops", script(`
		window.places = new Set();
		new MutationObserver(() => window.places.add(document.querySelector(".playhead").getAttribute("x1")))
			.observe(document.querySelector(".playhead"), { attributes: true });
		const speed = document.querySelector("[data-do=speed]"); speed.value = "4"; speed.dispatchEvent(new Event("input", { bubbles: true }))`))
	b.click("[data-do=play]")
	b.do("see several steps", poll(`window.places.size >= 4`))
	if between := eval[int](b, `[...window.places].filter(x => !document.querySelector("svg.theatre [data-x='" + x + "'], svg.theatre [data-end='" + x + "']")).length`); between != 0 {
		t.Errorf("the replay has stopped at %d places where nothing happens", between)
	}
}

// TestElectionWithoutScripts shows that the drawing and its table are complete in a browser that runs no scripts.
func TestElectionWithoutScripts(t *testing.T) {
	b := browser(t)
	b.do("run no scripts", call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
	b.open(electedAnew(t), "/elections")
	b.do("see the drawing", chromedp.WaitVisible("svg.theatre .vote"), chromedp.WaitVisible("svg.theatre .decision"), chromedp.WaitNotVisible(".controls"))
	b.click("summary")
	b.do("see the table", chromedp.WaitVisible("details table"))
}

// TestLastHourIsDrawn shows that the page of the last hour draws each figure and says the same in words, and that it
// follows a server that has just started.
func TestLastHourIsDrawn(t *testing.T) {
	all := servers(t)
	leads, _ := leader(t, all)
	b := browser(t)
	b.open(leads, "/history")
	if n := eval[int](b, `document.querySelectorAll("svg.chart").length`); n != 12 {
		t.Errorf("%d charts, want 12", n)
	}
	b.do("wait for a rate, which takes two readings", poll(`!document.querySelector("[aria-labelledby=requests-heading] .range").textContent.startsWith("Nothing")`))
	r, err := http.Get(leads.url("/v1/history"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var figures []struct{ Name string }
	if err := json.NewDecoder(r.Body).Decode(&figures); err != nil || len(figures) != 12 {
		t.Errorf("%d figures as JSON, want 12: %v", len(figures), err)
	}
	if n := eval[int](b, `[...document.querySelectorAll("svg.chart")].filter(c => !c.querySelector("title").textContent.includes("in the last hour")).length`); n != 0 {
		t.Errorf("%d charts do not say what they show", n)
	}
}
