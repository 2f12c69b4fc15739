package page

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"bellwether/recipe"
	"bellwether/zk"
)

// TestOverviewIsLive shows that an open page follows a change of leaders without a reload: the leader is killed, and
// the page of a follower shows who leads then, that the old leader does not answer, and keeps its focus.
func TestOverviewIsLive(t *testing.T) {
	all := servers(t)
	leads, follows := leader(t, all)
	b := browser(t)
	b.open(follows, "/")
	b.shows(fmt.Sprintf("server %d", leads.id))
	b.do("wait for the stream", chromedp.WaitVisible("#link.live"))
	b.do("mark the document, and set the focus", script(`window.marked = true; document.querySelector("nav a[href='/tree']").focus()`))
	b.do("wait for the figures of all servers", poll(`document.querySelectorAll("#servers tbody tr").length === 3 && !document.querySelector("#servers .tag.bad")`))
	leads.kill(t)
	b.shows(fmt.Sprintf("Server %d does not answer", leads.id))
	b.do("wait for the next leader", poll(fmt.Sprintf(`(() => { const dd = document.querySelector("#now dd").innerText; return dd.startsWith("server ") && dd !== "server %d" })()`, leads.id)))
	if !eval[bool](b, `window.marked === true && document.activeElement.getAttribute("href") === "/tree"`) {
		t.Error("the page was loaded again, or lost its focus")
	}
}

// TestTreeIsBrowsed shows that the tree is walked by clicks and searched, and that names with scripts are text.
func TestTreeIsBrowsed(t *testing.T) {
	all := servers(t)
	_, follows := leader(t, all)
	zc := client(t, follows)
	for _, path := range []string{"/app", "/app/config", "/app/<img src=x onerror=alert(1)>", "/app/\u202egnp.exe"} {
		if _, _, err := zc.Create(t.Context(), path, []byte("<script>alert(1)</script>")); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 250 {
		if _, _, err := zc.Create(t.Context(), fmt.Sprintf("/app/config/key-%03d", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	b := browser(t)
	b.open(follows, "/")
	b.follow("nav a[href='/tree']")
	b.follow("a[href='/tree?path=%2fapp']")
	b.shows("<img src=x onerror=alert(1)>")
	b.shows(`\u202egnp.exe`)
	b.shows("<script>alert(1)</script>")
	b.follow("a[href='/tree?path=%2fapp%2fconfig']")
	b.shows("250 in all")
	b.follow("nav.pager a:last-child")
	b.follow("nav.pager a:last-child")
	b.shows("key-249")
	b.do("enter a text", chromedp.SendKeys("input[name=text]", "KEY-24"+kb.Enter))
	b.shows("10\u00a0znodes with “KEY-24” in the name")
	b.follow("a[href='/tree?path=%2fapp%2fconfig%2fkey-249']")
	b.follow("a[href^='/tree/history']")
	b.shows("1\u00a0change in the transaction logs")
	b.shows("created")
	b.shows(zc.Session().ID.String())
}

// TestOperatorChanges shows that an operator signs in, sets data, and kicks the leader of an election, each after a
// confirmation, and that nobody else gets the forms.
func TestOperatorChanges(t *testing.T) {
	all := servers(t)
	leads, follows := leader(t, all)
	zc := client(t, follows)
	if _, _, err := zc.Create(t.Context(), "/motd", []byte("old text")); err != nil {
		t.Fatal(err)
	}
	lead := candidates(t, leads, 2)
	b := browser(t)
	b.open(follows, "/tree?path=/motd")
	if eval[int](b, `document.querySelectorAll("form[action^='/change']").length`) != 0 {
		t.Error("a viewer who is not signed in gets forms")
	}
	b.signIn(follows)
	b.open(follows, "/tree?path=/motd")
	b.click("details summary")
	b.do("replace the text", chromedp.WaitVisible("#set-data"), script(`document.getElementById("set-data").select()`), chromedp.SendKeys("#set-data", "new text"))
	b.follow("form[action='/change/set'] button")
	b.shows("Replace the data?")
	b.follow("form[action='/change/set'] button")
	b.shows("The data was set.")
	if data, st, err := zc.Get(t.Context(), "/motd"); err != nil || string(data) != "new text" || st.Version != 1 {
		t.Errorf("%q, version %d, %v", data, st.Version, err)
	}
	b.follow("nav a[href='/recipes']")
	b.shows("worker-1")
	first := <-lead
	b.follow(fmt.Sprintf("button[aria-label='Kick the bid of %s']", first))
	b.follow("form[action='/change/kick'] button")
	b.shows("The bid was deleted.")
	if second := <-lead; second == first {
		t.Errorf("%s leads again", second)
	}
	b.follow("form[action='/signout'] button")
	b.shows("Sign in")
}

// candidates runs clients that stand in an election, and returns the ids of those that lead, in order.
func candidates(t *testing.T, m *member, n int) <-chan string {
	t.Helper()
	return candidatesAt(t, m, "/election", n)
}

// candidatesAt is like candidates, but for the election at a path.
func candidatesAt(t *testing.T, m *member, path string, n int) <-chan string {
	t.Helper()
	leads := make(chan string, 16)
	for i := range n {
		zc, id := client(t, m), fmt.Sprintf("worker-%d", i+1)
		e, err := recipe.NewElection(zc, path, id, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = e.Lead(ctx, func(ctx context.Context, _ *recipe.Handle) error {
				leads <- id
				<-ctx.Done()
				return ctx.Err()
			})
		}()
		t.Cleanup(func() { cancel(); <-done })
	}
	return leads
}

// TestLeadershipIsTransferred shows that an operator transfers leadership on the page of the leader.
func TestLeadershipIsTransferred(t *testing.T) {
	all := servers(t)
	leads, follows := leader(t, all)
	b := browser(t)
	b.signIn(leads)
	b.do("choose the next leader", chromedp.SetValue("select[name=to]", fmt.Sprint(follows.id)))
	b.follow("form[action='/change/transfer'] button")
	b.shows("Transfer leadership?")
	b.follow("form[action='/change/transfer'] button")
	b.shows("Leadership was transferred.")
	if now, _ := leader(t, all); now != follows {
		t.Errorf("server %d leads", now.id)
	}
}

// TestHerdWarningIsShown shows that the page warns of a znode that many clients watch.
func TestHerdWarningIsShown(t *testing.T) {
	all := servers(t)
	_, follows := leader(t, all)
	zc := client(t, follows)
	if _, _, err := zc.Create(t.Context(), "/hot", nil); err != nil {
		t.Fatal(err)
	}
	for range 12 {
		if _, _, _, err := client(t, follows).GetW(t.Context(), "/hot"); err != nil {
			t.Fatal(err)
		}
	}
	b := browser(t)
	b.open(follows, "/watches")
	b.shows("notifies 12 connections at once")
	if _, err := zc.Set(t.Context(), "/hot", nil, zk.AnyVersion); err != nil {
		t.Fatal(err)
	}
	b.do("wait for the fan-out, without a reload", poll(`document.body.innerText.includes("NodeDataChanged")`))
}

// TestThemes shows that the page is dark if the system prefers dark or the viewer chooses it, and that the text has
// enough contrast in both themes.
func TestThemes(t *testing.T) {
	all := servers(t)
	_, follows := leader(t, all)
	b := browser(t)
	background := func() string { return eval[string](b, `getComputedStyle(document.body).backgroundColor`) }
	b.open(follows, "/")
	light := background()
	checkContrast(b, "light")
	b.follow("form.theme button[value=dark]")
	dark := background()
	checkContrast(b, "dark")
	b.do("prefer dark", call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}}))
	b.follow("form.theme button[value=light]")
	if got := background(); got != light || light == dark {
		t.Errorf("the chosen light theme is %s; light is %s, dark is %s", got, light, dark)
	}
	b.follow("form.theme button[value='']")
	if got := background(); got != dark {
		t.Errorf("where the system prefers dark the page is %s, want %s", got, dark)
	}
}

// checkContrast fails for each visible text whose contrast to its background is less than 4.5.
func checkContrast(b *tab, theme string) {
	b.Helper()
	for _, text := range eval[[]string](b, contrastScript) {
		b.Errorf("%s theme: %s", theme, text)
	}
}

// TestKeyboardAlone shows that every control of a page is reached with the tab key in the order of the page, that the
// focus can be seen, that the first control skips the menu, and that a search needs no mouse.
func TestKeyboardAlone(t *testing.T) {
	all := servers(t)
	_, follows := leader(t, all)
	b := browser(t)
	b.open(follows, "/tree")
	b.do("press tab", chromedp.KeyEvent(kb.Tab))
	if got := eval[string](b, `document.activeElement.innerText`); got != "Skip to the content" {
		t.Errorf("the first control is %q", got)
	}
	controls := eval[int](b, `[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")].filter(e => e.checkVisibility()).length`)
	seen := map[string]bool{}
	for range controls - 1 {
		b.do("press tab", chromedp.KeyEvent(kb.Tab))
		at := eval[string](b, `(() => { const e = document.activeElement; const s = getComputedStyle(e);
			return (s.outlineStyle === "none" ? "INVISIBLE " : "") + [...document.querySelectorAll("*")].indexOf(e) + " " + e.outerHTML.slice(0, 80) })()`)
		if strings.HasPrefix(at, "INVISIBLE") || seen[at] {
			t.Errorf("the focus is at %s, seen before: %v", at, seen[at])
		}
		seen[at] = true
	}
	b.open(follows, "/tree")
	b.do("search with keys alone", chromedp.Focus("input[name=text]"), chromedp.KeyEvent("quota"+kb.Enter))
	b.shows("/zookeeper/quota")
}

// TestPagesAreAccessible shows for every page of the menu that it has landmarks, one heading of the first level and no
// level left out, and that every control, table and image has a name; and that it fits on a narrow screen.
func TestPagesAreAccessible(t *testing.T) {
	all := servers(t)
	_, follows := leader(t, all)
	candidates(t, follows, 2)
	b := browser(t)
	b.signIn(follows)
	for _, path := range eval[[]string](b, `[...document.querySelectorAll("nav a")].map(a => a.getAttribute("href"))`) {
		b.open(follows, path)
		for _, fault := range eval[[]string](b, accessibleScript) {
			t.Errorf("%s: %s", path, fault)
		}
		b.do("a narrow screen", chromedp.EmulateViewport(320, 800))
		if wide := eval[int](b, `document.documentElement.scrollWidth`); wide > 320 {
			t.Errorf("%s is %d pixels wide on a screen of 320", path, wide)
		}
		b.do("the usual screen", chromedp.ResetViewport())
	}
}

// TestWithoutJavaScript shows that pages, search and themes work without scripts.
func TestWithoutJavaScript(t *testing.T) {
	all := servers(t)
	_, follows := leader(t, all)
	b := browser(t)
	b.do("disable scripts of pages", call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
	b.open(follows, "/")
	b.do("read the overview", chromedp.WaitVisible("#servers tbody tr:nth-child(3)"))
	b.do("choose a theme", chromedp.Click("form.theme button[value=dark]"), chromedp.WaitVisible("html[data-theme=dark] main"))
	b.do("go to the tree and search", chromedp.Click("nav a[href='/tree']"), chromedp.WaitVisible("input[name=text]"),
		chromedp.SendKeys("input[name=text]", "quota"+kb.Enter), chromedp.WaitVisible("a[href='/tree?path=%2fzookeeper%2fquota']"))
}
