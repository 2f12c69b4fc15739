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
// what the measurement itself adds.
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
	without, err := buildWithoutMetrics(dir)
	if err != nil {
		return nil, err
	}
	loads := []bench.Load{
		{Kind: bench.Read, Connections: 16, Outstanding: 8, Keys: 1000, Size: 100},
		{Kind: bench.Write, Connections: 16, Outstanding: 8, Keys: 1000, Size: 100},
	}
	turns := make([][3][]turn, len(loads))
	for n := range p.pairs {
		if err := m.round(n, loads, without, turns); err != nil {
			return nil, err
		}
	}
	for i, load := range loads {
		m.sayCost(string(load.Kind), turns[i])
	}
	return m.figures, nil
}

// buildWithoutMetrics builds a program that does not update metrics, and returns its path.
func buildWithoutMetrics(dir string) (string, error) {
	root, err := target.Root()
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "bellwether-nometrics")
	build := exec.Command("go", "build", "-tags", "nometrics", "-o", binary, "./cmd/bellwether")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build without metrics: %w\n%s", err, out)
	}
	return binary, nil
}

// round starts three new servers, one with metrics and two without, puts each load on them by turns, and adds to the
// turns of each load. Two processes of one program differ by several percent, so each round has its own.
func (m *tlsMeter) round(n int, loads []bench.Load, without string, turns [][3][]turn) error {
	on, _, err := m.start("")
	if err != nil {
		return err
	}
	defer on.Kill()
	page := regexp.MustCompile(`metrics at (http://[^ "]+)`).FindStringSubmatch(on.Log())
	if page == nil {
		return errors.New("the log names no port for metrics")
	}
	servers, pages := [3]*target.Server{on}, [3]string{page[1]}
	for i := range 2 {
		if servers[1+i], err = m.startProgram(without); err != nil {
			return err
		}
		defer servers[1+i].Kill()
	}
	for i, load := range loads {
		for k := range servers {
			way := (n + k) % len(servers) // so that none is always the first
			s := servers[way]
			load.Connect = func(ctx context.Context) (*zk.Client, error) { return zk.Connect(ctx, s.Addr, nil) }
			load.Root, load.Duration = fmt.Sprintf("/%s", load.Kind), m.plan.duration
			t, err := m.scraped(s, load, pages[way])
			if err != nil {
				return err
			}
			turns[i][way] = append(turns[i][way], t)
		}
	}
	return nil
}

// startProgram starts a server of another program than the one under test.
func (m *tlsMeter) startProgram(binary string) (*target.Server, error) {
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

// sayCost shows what metrics cost under a load: the median difference between the server with metrics and the mean of
// the two without.
func (m *tlsMeter) sayCost(load string, turns [3][]turn) {
	mean := make([]turn, len(turns[1]))
	for n := range mean {
		mean[n].cpu = (turns[1][n].cpu + turns[2][n].cpu) / 2
	}
	m.say(medians(turns[0]).String(), "%s, metrics on, scraped every second", load)
	m.say(medians(turns[1]).String(), "%s, metrics off", load)
	m.say(difference(turns[0], mean), "%s, metrics on against off, processor time for an operation", load)
	m.say(difference(turns[2], turns[1]), "%s, control: off against off", load)
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
