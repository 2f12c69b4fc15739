// Command report measures Apache ZooKeeper, Bellwether and etcd side by side on this machine, in
// alternating pairs, and writes the ratios with their spread into docs/performance.md, with charts. The page
// has three sections: rows side by side, curves, and other work. A run writes those of which it has measured something.
//
// Every measurement is added to a file of results, one JSON object a line. A run that was interrupted
// goes on with the next measurement; the results of other settings or versions are not used.
//
// Run it with make bench-report, on a machine that runs nothing else.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"bellwether/interop/target"

	"golang.org/x/sys/unix"
)

// The systems, in the order of a pair, and what stands for the machine itself.
const (
	zooKeeper  = "zookeeper"
	bellwether = "bellwether"
	etcd       = "etcd"
	machine    = "machine"
	ceilingRow = "ceiling"
)

var systemNames = map[string]string{zooKeeper: "Apache ZooKeeper", bellwether: "Bellwether", etcd: "etcd"}

// run holds the flags and what is the same for all measurements.
type run struct {
	rows, systems    string
	pairs            int
	curvePairs       int
	curveDuration    time.Duration
	divided          int
	warmup, duration time.Duration
	heap             string
	results          string
	docs             string
	etcdProgram      string
	dir              string
	table            bool

	binary   string
	settings settings
}

func main() {
	r := &run{}
	flag.StringVar(&r.rows, "rows", "", "comma-separated names of rows, curves, points of curves and kinds of other work, empty: all; a wrong name lists them")
	flag.IntVar(&r.pairs, "pairs", 5, "pairs of measurements")
	flag.DurationVar(&r.warmup, "warmup", 5*time.Second, "time before each measurement")
	flag.DurationVar(&r.duration, "duration", 10*time.Second, "time of each measurement")
	flag.IntVar(&r.curvePairs, "curve-pairs", 5, "in how many of the pairs curves are measured, at most")
	flag.DurationVar(&r.curveDuration, "curve-duration", 3*time.Second, "time of each measurement of a curve, after a third of it as warm-up")
	flag.IntVar(&r.divided, "divided", 1, "divide the sizes of curves and of other work by this number, to try them out")
	flag.StringVar(&r.heap, "heap", "2g", "heap of Apache's Java process")
	flag.StringVar(&r.results, "results", "report.jsonl", "file of the results")
	flag.StringVar(&r.docs, "docs", "", "directory of performance.md and images; empty: print the section")
	flag.StringVar(&r.etcdProgram, "etcd", "etcd", "etcd's program; empty: no etcd")
	flag.StringVar(&r.dir, "dir", "", "directory on the disk to measure; empty: the system's for temporary files")
	flag.StringVar(&r.systems, "systems", strings.Join([]string{zooKeeper, bellwether, etcd}, ","), "comma-separated systems to measure")
	flag.BoolVar(&r.table, "table", false, "measure nothing, and write the table of the results that there are")
	flag.Parse()
	if err := r.check(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := r.run(ctx)
	if gone := target.RemoveBinary(); err == nil {
		err = gone
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

// check returns an error if the command line cannot be what the user meant.
func (r *run) check(arguments []string) error {
	if len(arguments) > 0 {
		return fmt.Errorf("%q: all settings are flags; -h lists them", arguments[0])
	}
	for name := range strings.SplitSeq(r.systems, ",") {
		if systemNames[name] == "" {
			return fmt.Errorf("-systems: no system %q; there are %s, %s, %s", name, zooKeeper, bellwether, etcd)
		}
	}
	for name, n := range map[string]int{"pairs": r.pairs, "divided": r.divided} {
		if n < 1 {
			return fmt.Errorf("-%s %d: want 1 or more", name, n)
		}
	}
	for name, d := range map[string]time.Duration{"duration": r.duration, "curve-duration": r.curveDuration} {
		if d <= 0 {
			return fmt.Errorf("-%s %v: want more than 0", name, d)
		}
	}
	if r.curvePairs < 0 || r.warmup < 0 {
		return fmt.Errorf("-curve-pairs %d, -warmup %v: want 0 or more", r.curvePairs, r.warmup)
	}
	_, err := choose(r.rows)
	return err
}

func (r *run) run(ctx context.Context) error {
	chosen, err := choose(r.rows)
	if err != nil {
		return err
	}
	if r.binary, err = target.Binary(); err != nil {
		return err
	}
	r.settings = settings{Date: time.Now().UTC().Format(time.DateOnly), Machine: machineName(), Versions: r.versions(), Warmup: r.warmup.String(), Duration: r.duration.String(), Heap: r.heap, Curves: r.curveDuration.String()}
	if r.divided > 1 {
		r.settings.Divided = r.divided
	}
	if !r.table {
		if err := r.measureAll(ctx, chosen); err != nil {
			return err
		}
	}
	return r.write()
}

// choose returns the rows with the given names. The name of a curve means all of its points.
func choose(names string) (chosen []row, err error) {
	all := allRows()
	if names == "" {
		return all, nil
	}
	for name := range strings.SplitSeq(names, ",") {
		before := len(chosen)
		for _, r := range all {
			if r.name == name || r.curve == name {
				chosen = append(chosen, r)
			}
		}
		if len(chosen) == before {
			return nil, fmt.Errorf("no row %q; there are %s", name, strings.Join(rowNames(), ", "))
		}
	}
	return chosen, nil
}

// allRows returns the rows of all tables.
func allRows() []row {
	return slices.Concat(rows, curveRows(), workRows())
}

// rowNames returns what can be chosen, without the points of curves.
func rowNames() (names []string) {
	for _, r := range allRows() {
		if r.curve == "" {
			names = append(names, r.name)
		} else if !slices.Contains(names, r.curve) {
			names = append(names, r.curve)
		}
	}
	return names
}

// measureAll measures pair after pair what the file of results does not contain yet.
func (r *run) measureAll(ctx context.Context, chosen []row) error {
	// What the machine allows stands beside the rows, not beside curves and other work.
	withRows := slices.ContainsFunc(chosen, func(c row) bool { return slices.ContainsFunc(rows, func(r row) bool { return r.name == c.name }) })
	for pair := range r.pairs {
		if withRows {
			if err := r.once(ctx, ceilingRow, pair, machine, func() ([]figure, error) { return ceiling(ctx, r) }); err != nil {
				return err
			}
		}
		for _, row := range chosen {
			if row.curve != "" && pair >= r.curvePairs || row.alone && pair > 0 {
				continue
			}
			for _, system := range []string{zooKeeper, bellwether} {
				if err := r.once(ctx, row.name, pair, system, func() ([]figure, error) { return row.zk(ctx, r, system) }); err != nil {
					return err
				}
			}
			if row.etcd == nil || r.etcdProgram == "" {
				continue
			}
			if err := r.once(ctx, row.name, pair, etcd, func() ([]figure, error) { return row.etcd(ctx, r) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// once measures one row of one system, unless the file of results has it.
func (r *run) once(ctx context.Context, row string, pair int, system string, measure func() ([]figure, error)) error {
	known, err := readResults(r.results)
	if err != nil {
		return err
	}
	if find(known, row, pair, system, r.settings) != nil || system != machine && !slices.Contains(strings.Split(r.systems, ","), system) {
		return nil
	}
	fmt.Fprintf(os.Stderr, "pair %d of %d: %s: %s\n", pair+1, r.pairs, row, system)
	unix.Sync() // or the system writes what the measurement before has left in the page cache during this one
	began, skipped := time.Now(), ""
	figures, err := measure()
	var skip *skipError
	if errors.As(err, &skip) {
		err, figures, skipped = nil, nil, skip.why
		fmt.Fprintf(os.Stderr, "not measured: %s\n", skipped)
	}
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return fmt.Errorf("%s: %s: %w", row, system, err)
	}
	took := time.Since(began)
	fmt.Fprintf(os.Stderr, "measured in %v\n", took.Round(time.Second))
	return appendResult(r.results, result{row, pair, system, r.settings, figures, skipped, took.Seconds()})
}

// write writes the sections and charts of what was measured, or prints the sections.
func (r *run) write() error {
	all, err := readResults(r.results)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(res result) bool { return !res.Settings.same(r.settings) })
	if len(all) == 0 {
		return fmt.Errorf("%s has no results of these settings and versions", r.results)
	}
	path := filepath.Join(r.docs, "performance.md")
	page := ""
	if r.docs != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		page = string(text)
	}
	for _, s := range sections {
		own := s.of(all)
		if len(own) == 0 {
			continue
		}
		drawn, err := s.charts(own)
		if err != nil {
			return err
		}
		text := s.text(own, drawn)
		if r.docs == "" {
			fmt.Print(text)
			continue
		}
		if page, err = s.replaced(page, text); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for _, c := range drawn {
			if err := os.WriteFile(filepath.Join(r.docs, c.file), c.svg, 0o644); err != nil {
				return err
			}
		}
	}
	if r.docs == "" {
		return nil
	}
	return os.WriteFile(path, []byte(page), 0o644)
}

// machineName describes this machine.
func machineName() string {
	name := "unknown processor"
	text, _ := os.ReadFile("/proc/cpuinfo") // other systems have none
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			name = strings.TrimSpace(value)
			break
		}
	}
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return fmt.Sprintf("%s, %d cores, %s %s", name, runtime.NumCPU(), runtime.GOOS, strings.TrimSpace(string(kernel)))
}

// versions returns the versions of what is measured.
func (r *run) versions() string {
	all := []string{"Bellwether " + commit(), runtime.Version()}
	for _, p := range []struct{ name, program string }{{"Apache ZooKeeper", "libzookeeper-java"}, {"OpenJDK", "openjdk-17-jre-headless"}} {
		if out, err := exec.Command("dpkg-query", "-W", "-f", "${Version}", p.program).Output(); err == nil {
			all = append(all, p.name+" "+string(out)+" (Debian)")
		}
	}
	if out, err := exec.Command(r.etcdProgram, "--version").Output(); err == nil {
		first, _, _ := strings.Cut(string(out), "\n")
		all = append(all, "etcd "+strings.TrimPrefix(first, "etcd Version: "))
	}
	return strings.Join(all, ", ")
}

// commit returns the last commit of the program, with a mark if files differ from it. Changes of the documentation
// do not count: the page with the table is one of them.
func commit() string {
	program := []string{"--", ":(top)", ":(top,exclude)docs", ":(top,exclude,glob)**/*.md"}
	out, err := exec.Command("git", append([]string{"log", "-1", "--format=%h"}, program...)...).Output()
	if err != nil {
		return "of unknown version"
	}
	changed, err := exec.Command("git", append([]string{"status", "--porcelain"}, program...)...).Output()
	name := strings.TrimSpace(string(out))
	if err != nil || len(changed) > 0 {
		name += " with changes"
	}
	return name
}
