package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"bellwether/interop/target"
)

// loads are the rows of the table: each measures one kind of load.
var loads = []struct {
	kind                     string
	connections, outstanding int
}{
	{"read", 1, 1},
	{"read", 64, 1},
	{"read", 64, 16},
	{"write", 1, 1},
	{"write", 64, 1},
	{"write", 64, 16},
}

// measure makes all measurements of one server.
func measure(ctx context.Context, kind target.Kind, p plan) ([]figure, error) {
	dir, err := os.MkdirTemp("", "bellwether-compare-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	m := &meter{ctx: ctx, kind: kind, plan: p, dir: dir}
	for _, step := range []func() error{m.starts, m.loads, m.memory} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return m.figures, nil
}

// meter measures one server.
type meter struct {
	ctx     context.Context
	kind    target.Kind
	plan    plan
	dir     string
	servers int               // servers started so far; each has its own directory
	idle    int64             // resident bytes of the empty server
	extra   map[string]string // additional lines of every zoo.cfg
	figures []figure
}

func (m *meter) say(value, what string, args ...any) {
	f := figure{fmt.Sprintf(what, args...), value}
	fmt.Fprintf(os.Stderr, "%s: %s: %s\n", m.kind, f.what, f.value)
	m.figures = append(m.figures, f)
}

// start starts a server with a data directory, or a new one if data is "". It returns how
// long the first answer took.
func (m *meter) start(data string) (*target.Server, time.Duration, error) {
	m.servers++
	dir := filepath.Join(m.dir, strconv.Itoa(m.servers))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, 0, err
	}
	if _, err := target.Binary(); err != nil { // so that the start does not include the build
		return nil, 0, err
	}
	extra := map[string]string{"tickTime": "2000", "preAllocSize": "65536"}
	maps.Copy(extra, m.extra)
	begin := time.Now()
	s, err := target.Start(m.kind, dir, target.Options{
		Data:  data,
		JVM:   []string{"-Xms" + m.plan.heap, "-Xmx" + m.plan.heap},
		Extra: extra,
		Reap:  time.Minute,
	})
	return s, time.Since(begin), err
}

// starts measures the time from exec to the first answer with an empty directory.
func (m *meter) starts() error {
	var took []time.Duration
	var idle []int64
	for range m.plan.starts {
		s, d, err := m.start("")
		if err != nil {
			return err
		}
		took = append(took, d)
		rss, err := resident(s.PID())
		s.Kill()
		if err != nil {
			return err
		}
		idle = append(idle, rss)
	}
	m.say(median(took).Round(time.Millisecond).String(), "time from exec to the first answer, empty")
	m.idle = median(idle)
	m.say(mib(m.idle), "resident, idle")
	return nil
}

func (m *meter) loads() error {
	s, _, err := m.start("")
	if err != nil {
		return err
	}
	defer s.Kill()
	for _, load := range loads {
		args := []string{"bench", load.kind, "--server", s.Addr, "-o", "json",
			"--connections", strconv.Itoa(load.connections), "--outstanding", strconv.Itoa(load.outstanding)}
		if _, err := m.bench(append(args, "--warmup", "0s", "--duration", m.plan.warmup.String())); err != nil {
			return err
		}
		before, err := processor(s.PID())
		if err != nil {
			return err
		}
		r, err := m.bench(append(args, "--warmup", "0s", "--duration", m.plan.duration.String()))
		if err != nil {
			return err
		}
		after, err := processor(s.PID())
		if err != nil {
			return err
		}
		perOp := (after - before) / time.Duration(max(r.Operations, 1))
		m.say(fmt.Sprintf("%.0f/s, p50 %d, p99 %d, p99.9 %d µs, cpu %.1f µs/op",
			r.PerSecond, r.P50, r.P99, r.P999, float64(perOp)/float64(time.Microsecond)),
			"%s, %d connections, %d in flight on each", load.kind, load.connections, load.outstanding)
	}
	return nil
}

// report holds the fields of bellwether bench -o json that the table shows.
type report struct {
	PerSecond  float64 `json:"per_second"`
	Operations int64   `json:"operations"`
	P50        int64   `json:"p50_us"`
	P99        int64   `json:"p99_us"`
	P999       int64   `json:"p999_us"`
}

func (m *meter) bench(args []string) (r report, err error) {
	binary, err := target.Binary()
	if err != nil {
		return r, err
	}
	cmd := exec.CommandContext(m.ctx, binary, append(args, "--yes")...) // the servers are our own
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return r, fmt.Errorf("bellwether %v: %w\n%s", args, err, &stderr)
	}
	return r, json.Unmarshal(out, &r)
}

// memory fills a server, measures its memory, and starts it again.
func (m *meter) memory() error {
	s, _, err := m.start("")
	if err != nil {
		return err
	}
	defer s.Kill()
	if err := fill(m.ctx, s.Addr, "", m.plan.znodes); err != nil {
		return err
	}
	if err := s.Stop(); err != nil {
		return err
	}
	again, took, err := m.start(s.Data)
	if err != nil {
		return err
	}
	defer again.Kill()
	rss, err := resident(again.PID())
	if err != nil {
		return err
	}
	m.say(took.Round(10*time.Millisecond).String(), "time from exec to the first answer, %d znodes", m.plan.znodes)
	m.say(fmt.Sprintf("%s, %d bytes per znode more than without znodes", mib(rss), (rss-m.idle)/int64(max(m.plan.znodes, 1))),
		"resident, %d znodes", m.plan.znodes)
	return nil
}

func mib(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

func median[T int64 | time.Duration](values []T) T {
	slices.Sort(values)
	return values[len(values)/2]
}
