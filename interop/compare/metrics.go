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
// scraped. A second server without metrics is the control: its difference from the first one shows
// what the measurement itself adds. All servers run all the time; the loads take turns.
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
	off, err := m.startWithoutMetrics(2)
	for _, s := range off {
		defer s.Kill()
	}
	if err != nil {
		return nil, err
	}
	for _, load := range []bench.Load{
		{Kind: bench.Read, Connections: 16, Outstanding: 8, Keys: 1000, Size: 100},
		{Kind: bench.Write, Connections: 16, Outstanding: 8, Keys: 1000, Size: 100},
	} {
		if err := m.pairs(load, [3]*target.Server{on, off[0], off[1]}, found[1]); err != nil {
			return nil, err
		}
	}
	return m.figures, nil
}

// startWithoutMetrics builds a server that does not update metrics, and starts n of them. It also
// returns those that have started if another one does not.
func (m *tlsMeter) startWithoutMetrics(n int) (started []*target.Server, err error) {
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
	for range n {
		s, _, err := m.start("")
		if err != nil {
			return started, err
		}
		started = append(started, s)
	}
	return started, nil
}

// pairs puts a load on the servers by turns: with metrics, without, and without again. It shows the median
// differences from the second one. page is the address of the first one's metrics.
func (m *tlsMeter) pairs(load bench.Load, servers [3]*target.Server, page string) error {
	pages := [3]string{page}
	var turns [3][]turn
	for n := range m.plan.pairs {
		for i := range servers {
			way := (n + i) % len(servers) // so that none is always the first
			s := servers[way]
			load.Connect = func(ctx context.Context) (*zk.Client, error) { return zk.Connect(ctx, s.Addr, nil) }
			load.Root, load.Duration = fmt.Sprintf("/%s-%d", load.Kind, n), m.plan.duration
			t, err := m.scraped(s, load, pages[way])
			if err != nil {
				return err
			}
			turns[way] = append(turns[way], t)
		}
	}
	m.say(medians(turns[0]).String(), "%s, metrics on, scraped every second", load.Kind)
	m.say(medians(turns[1]).String(), "%s, metrics off", load.Kind)
	m.say(difference(turns[0], turns[1]), "%s, metrics on against off, processor time for an operation", load.Kind)
	m.say(difference(turns[2], turns[1]), "%s, control: off against off", load.Kind)
	return nil
}

// difference returns by how much more processor time an operation takes in a's turns than in b's.
func difference(a, b []turn) string {
	differences := make([]float64, len(a)) // in percent
	for n := range a {
		differences[n] = 100*float64(a[n].cpu)/float64(max(b[n].cpu, 1)) - 100
	}
	slices.Sort(differences)
	quarter := func(n int) float64 { return differences[n*(len(differences)-1)/4] }
	return fmt.Sprintf("%+.2f %% (%+.2f to %+.2f), median and quartiles of %d pairs", quarter(2), quarter(1), quarter(3), len(differences))
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
