package page

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// weightMax is the largest size of a page with everything that it loads, in bytes, as it is transferred.
const weightMax = 25_000

// TestWeightAndFirstPaint shows that each page of the menu is small with all that it loads, and logs when its first
// paint was.
func TestWeightAndFirstPaint(t *testing.T) {
	all := servers(t)
	_, follows := leader(t, all)
	b := browser(t)
	b.open(follows, "/")
	for _, path := range eval[[]string](b, `[...document.querySelectorAll("nav a")].map(a => a.getAttribute("href"))`) {
		b.open(follows, path)
		b.do("wait for the first paint", poll(`performance.getEntriesByName("first-contentful-paint").length > 0`))
		paint := eval[float64](b, `performance.getEntriesByName("first-contentful-paint")[0].startTime`)
		sum := func(size string) int {
			return eval[int](b, fmt.Sprintf(`[performance.getEntriesByType("navigation")[0], ...performance.getEntriesByType("resource").filter(e => e.name.includes("/assets/"))].reduce((sum, e) => sum + e.%s, 0)`, size))
		}
		weight, whole := sum("encodedBodySize"), sum("decodedBodySize")
		t.Logf("%s: first contentful paint after %.0f ms, %d bytes with all that it loads, %d before compression", path, paint, weight, whole)
		if weight == 0 || weight > weightMax {
			t.Errorf("%s weighs %d bytes, want at most %d", path, weight, weightMax)
		}
	}
}

// TestAdminRequests logs how many requests in a second the admin port answers, from 8 connections.
func TestAdminRequests(t *testing.T) {
	all := servers(t)
	_, follows := leader(t, all)
	web := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	defer web.CloseIdleConnections()
	for _, path := range []string{"/livez", "/v1/server", "/v1/tree?path=/zookeeper", "/v1/watches", "/", "/tree"} {
		var answered atomic.Int64
		var asking sync.WaitGroup
		began := time.Now()
		for range 8 {
			asking.Go(func() {
				for time.Since(began) < time.Second {
					r, err := web.Get(follows.url(path))
					if err != nil {
						t.Error(err)
						return
					}
					if _, err := io.Copy(io.Discard, r.Body); err != nil || r.StatusCode != http.StatusOK {
						t.Errorf("%s: %s %v", path, r.Status, err)
					}
					r.Body.Close()
					answered.Add(1)
				}
			})
		}
		asking.Wait()
		rate := float64(answered.Load()) / time.Since(began).Seconds()
		t.Logf("%s: %.0f requests/s", path, rate)
		if rate < 10 {
			t.Errorf("%s: only %.1f requests/s", path, rate)
		}
	}
}
