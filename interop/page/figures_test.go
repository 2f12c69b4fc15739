package page

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// weightMax is the largest size of the first page with everything that it loads, in bytes, without compression.
const weightMax = 60_000

// TestWeightAndFirstPaint shows that a page is small with all that it loads, and logs when its first paint was.
func TestWeightAndFirstPaint(t *testing.T) {
	all := servers(t)
	_, follows := leader(t, all)
	b := browser(t)
	for _, path := range []string{"/", "/tree", "/recipes", "/sessions", "/watches"} {
		b.open(follows, path)
		b.do("wait for the first paint", poll(`performance.getEntriesByName("first-contentful-paint").length > 0`))
		paint := eval[float64](b, `performance.getEntriesByName("first-contentful-paint")[0].startTime`)
		weight := eval[int](b, `[performance.getEntriesByType("navigation")[0], ...performance.getEntriesByType("resource").filter(e => !e.name.endsWith("/v1/events"))].reduce((sum, e) => sum + e.decodedBodySize, 0)`)
		t.Logf("%s: first contentful paint after %.0f ms, %d bytes with all that it loads", path, paint, weight)
		if weight > weightMax {
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
