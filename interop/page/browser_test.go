package page

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"bellwether/interop/target"
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	code := m.Run()
	if err := target.RemoveBinary(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// tab is a page of the browser. It records what goes wrong in it.
type tab struct {
	testing.TB
	ctx context.Context

	mu     sync.Mutex
	faults []string // errors of scripts, and requests to other places
	origin string   // where requests may go
}

// browser opens a tab in a new browser, which ends with the test.
func browser(t testing.TB) *tab {
	t.Helper()
	target.File(t, "/usr/bin/chromium", "chromium")
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath("/usr/bin/chromium"), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1280, 900), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	ctx, endBrowser := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, endTab := chromedp.NewContext(ctx)
	b := &tab{TB: t, ctx: ctx}
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	if err == nil {
		err = chromedp.Listen(ctx, b.observe)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Log("end of the browser: ", err)
		}
		endTab()
		endBrowser()
		for _, f := range b.faults {
			t.Error(f)
		}
	})
	return b
}

// observe records what must not happen on any page.
func (b *tab) observe(ev any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch ev := ev.(type) {
	case *runtime.EventExceptionThrown:
		b.faults = append(b.faults, "a script failed: "+ev.ExceptionDetails.Text)
	case *network.EventRequestWillBeSent:
		if to := ev.Request.URL; b.origin != "" && !strings.HasPrefix(to, b.origin) && !strings.HasPrefix(to, "data:") && !strings.HasPrefix(to, "chrome") {
			b.faults = append(b.faults, "the page has asked for "+to)
		}
	}
}

// step is an action without a value.
type step = chromedp.Action[chromedp.Void]

// script is a step that runs JavaScript.
func script(text string) step { return chromedp.Evaluate[chromedp.Void](text) }

// poll is a step that waits until an expression is true.
func poll(expression string) step {
	return chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(patience))
}

// call is a step that calls the browser.
func call[P, R any](c cdp.Command[P, R], params P) step {
	return func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, c, params)
		return chromedp.Void{}, err
	}
}

// do carries out steps in the tab.
func (b *tab) do(what string, steps ...step) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		body, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
		b.Fatalf("%s: %v\nthe page is\n%s", what, err, body)
	}
}

// open goes to a page of a server.
func (b *tab) open(m *member, path string) {
	b.Helper()
	b.mu.Lock()
	b.origin = m.url("/")
	b.mu.Unlock()
	b.do("open "+path, chromedp.Navigate(m.url(path)), chromedp.WaitReady("main"))
}

// eval returns the value of a JavaScript expression.
func eval[T any](b *tab, expression string) (v T) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.Fatalf("%s: %v", expression, err)
	}
	return v
}

// shows waits until the visible text of the page contains a text.
func (b *tab) shows(text string) {
	b.Helper()
	until(b, "the text "+text, func() error {
		ctx, cancel := context.WithTimeout(b.ctx, patience)
		defer cancel()
		body, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.innerText`))
		if err == nil && !strings.Contains(body, text) {
			err = fmt.Errorf("the page shows\n%s", body)
		}
		return err
	})
}

// click clicks the element of a selector, as a user does.
func (b *tab) click(selector string) {
	b.Helper()
	b.do("click "+selector, chromedp.Click(selector, chromedp.NodeVisible))
}

// follow clicks an element that leads to another page, and waits for that page.
func (b *tab) follow(selector string) {
	b.Helper()
	b.do("mark the page", script(`document.body.dataset.old = "1"`))
	b.click(selector)
	b.newPage(selector)
}

// newPage waits until the marked page has been replaced. It evaluates the condition again and again from here, because
// a poll inside the browser fails when its page is replaced.
func (b *tab) newPage(selector string) {
	b.Helper()
	until(b, "the page behind "+selector, func() error {
		ctx, cancel := context.WithTimeout(b.ctx, patience)
		defer cancel()
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`document.readyState === "complete" && document.body.dataset.old !== "1"`))
		if err == nil && !ok {
			err = errors.New("the old page is shown")
		}
		return err
	})
}

// signIn signs in as the operator ada.
func (b *tab) signIn(m *member) {
	b.Helper()
	b.open(m, "/")
	b.follow("header a.who")
	b.do("enter the token", chromedp.SendKeys("input[name=token]", token))
	b.follow("main form[action='/signin'] button")
	b.shows("Signed in as ada")
}
