package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"bellwether/internal/bench"
	"bellwether/interop/target"
	"bellwether/zk"
)

// costOfMetrics measures the processor time of a server for an operation, with metrics as they
// are and a scrape each second, and with a program that does not update metrics and is not
// scraped. Both servers run all the time; the loads take turns.
func costOfMetrics(ctx context.Context, kind target.Kind, p plan) ([]figure, error) {
	dir, err := os.MkdirTemp("", "bellwether-compare-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	m := &tlsMeter{meter: &meter{ctx: ctx, kind: kind, plan: p, dir: dir, extra: map[string]string{
		"admin.enableServer": "false", "metricsProvider.httpHost": "127.0.0.1", "metricsProvider.httpPort": "0",
		"metricsProvider.className": "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider",
	}}}
	on, _, err := m.start("")
	if err != nil {
		return nil, err
	}
	defer on.Kill()
	found := regexp.MustCompile(`metrics at (http://[^ "]+)`).FindStringSubmatch(on.Log())
	if found == nil {
		return nil, errors.New("the log names no port for metrics")
	}
	off, err := m.startWithoutMetrics()
	if err != nil {
		return nil, err
	}
	defer off.Kill()
	for _, load := range []bench.Load{
		{Kind: bench.Read, Connections: 16, Outstanding: 8, Keys: 1000, Size: 100},
		{Kind: bench.Write, Connections: 16, Outstanding: 8, Keys: 1000, Size: 100},
	} {
		if err := m.pairs(load, on, off, found[1]); err != nil {
			return nil, err
		}
	}
	return m.figures, nil
}

// startWithoutMetrics builds and starts a server that does not update metrics.
func (m *tlsMeter) startWithoutMetrics() (*target.Server, error) {
	root, err := target.Root()
	if err != nil {
		return nil, err
	}
	binary := filepath.Join(m.dir, "bellwether-nometrics")
	build := exec.Command("go", "build", "-tags", "nometrics", "-o", binary, "./cmd/bellwether")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build without metrics: %w\n%s", err, out)
	}
	const variable = "INTEROP_BINARY" // package target starts the program that it names
	before, set := os.LookupEnv(variable)
	os.Setenv(variable, binary)
	defer func() {
		if os.Unsetenv(variable); set {
			os.Setenv(variable, before)
		}
	}()
	s, _, err := m.start("")
	return s, err
}

// pairs puts a load on both servers by turns, and shows the median difference of the pairs. page is
// the address of on's metrics.
func (m *tlsMeter) pairs(load bench.Load, on, off *target.Server, page string) error {
	var turns [2][]turn
	var differences []int64 // in thousandths of a percent
	for n := range m.plan.pairs {
		for i := range 2 {
			way := (n + i) % 2 // so that neither is always the first
			s := []*target.Server{on, off}[way]
			load.Connect = func(ctx context.Context) (*zk.Client, error) { return zk.Connect(ctx, s.Addr, nil) }
			load.Root, load.Duration = fmt.Sprintf("/%s-%d", load.Kind, n), m.plan.duration
			t, err := m.scraped(s, load, []string{page, ""}[way])
			if err != nil {
				return err
			}
			turns[way] = append(turns[way], t)
		}
		differences = append(differences, 100_000*turns[0][n].cpu/max(turns[1][n].cpu, 1)-100_000)
	}
	m.say(medians(turns[0]).String(), "%s, metrics on, scraped every second", load.Kind)
	m.say(medians(turns[1]).String(), "%s, metrics off", load.Kind)
	slices.Sort(differences)
	percent := func(quarter int) float64 { return float64(differences[quarter*(len(differences)-1)/4]) / 1000 }
	m.say(fmt.Sprintf("%+.2f %% (%+.2f to %+.2f)", percent(2), percent(1), percent(3)),
		"%s, processor time for an operation, median and quartiles of %d pairs", load.Kind, m.plan.pairs)
	return nil
}

// scraped puts a load on a server, and meanwhile reads the page with its metrics every second; empty:
// there is none.
func (m *tlsMeter) scraped(s *target.Server, load bench.Load, page string) (turn, error) {
	if page == "" {
		return m.once(s, load)
	}
	done, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				ended <- nil
				return
			case <-tick.C:
			}
			r, err := http.Get(page)
			if err != nil {
				ended <- err
				return
			}
			io.Copy(io.Discard, r.Body)
			r.Body.Close()
		}
	}()
	t, err := m.once(s, load)
	close(done)
	return t, errors.Join(err, <-ended)
}
