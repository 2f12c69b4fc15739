package measure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"bellwether/internal/mutants"
)

// Runner judges the mutants of a module.
type Runner struct {
	Module *Module
	// Results is the path of the file of results, to which results are appended.
	Results string
	// Budget is the processor time for one mutant in the simulator.
	Budget time.Duration
	// Jobs is the number of mutants that are judged at the same time.
	Jobs int
	// Cache is a build cache that belongs to the Runner, which removes what mutants have
	// left there; empty: the usual build cache, where Go removes it days later.
	Cache string
	// Log gets a line for each result.
	Log io.Writer

	sound     string // the simulator without a mutant
	temporary string // a folder that is deleted at the end of Run; empty: none

	building  sync.RWMutex // held for writing while the cache is emptied
	mu        sync.Mutex   // guards what follows, and the file of results
	known     mutants.Results
	baselines map[string]*baseline
	judged    int
}

// Run judges the selected mutants whose results are not known, and appends the results. It
// returns when all are judged, the context is done, or something other than a mutant fails.
func (r *Runner) Run(ctx context.Context, s Selection) error {
	selected, err := s.Of(r.Module.Mutants)
	if err != nil {
		return err
	}
	if err := r.prepareFile(); err != nil {
		return err
	}
	if err := r.load(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r.temporary = dir
	defer func() { r.temporary = "" }()
	if s.Simulator {
		if err := r.buildSimulator(ctx, dir); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	next := make(chan *mutants.Mutant)
	var workers sync.WaitGroup
	for range max(r.Jobs, 1) {
		workers.Go(func() {
			for m := range next {
				if err := r.judge(ctx, m, s); err != nil {
					stop(err)
				}
			}
		})
	}
	for _, m := range selected {
		if r.Module.Equivalent[m.Name] != "" {
			continue
		}
		select {
		case next <- m:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}

// load reads the results that are known.
func (r *Runner) load() error {
	text, err := os.ReadFile(r.Results)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return err
	}
	r.known, err = mutants.ReadResults(r.Results, string(text))
	r.baselines = map[string]*baseline{}
	return err
}

// prepareFile removes the beginning of a result without an end of line from the end of the file of results. The run
// that began to write that line was killed, and its mutant is judged again. Any other text without an end of line
// shows that this is no file of results, which is then left as it is. If the file cannot be written, the error
// comes before the first mutant is judged.
func (r *Runner) prepareFile() error {
	f, err := os.OpenFile(r.Results, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(f)
	end := bytes.LastIndexByte(text, '\n') + 1
	switch rest := string(text[end:]); {
	case err != nil || rest == "":
	case !mutants.IsBeginning(rest, r.Module.Mutants):
		err = fmt.Errorf("%s:%d: %.80q has no end of line and is not the beginning of a result of a mutant: delete it, or name a file of results",
			r.Results, bytes.Count(text, []byte("\n"))+1, rest)
	default:
		fmt.Fprintf(r.Log, "%s: the last line is removed, because it has no end: %q\n", r.Results, rest)
		err = f.Truncate(int64(end))
	}
	return errors.Join(err, f.Close())
}

// judge judges one mutant.
func (r *Runner) judge(ctx context.Context, m *mutants.Mutant, s Selection) error {
	changed, err := m.Apply(r.Module.source)
	if err != nil {
		return fmt.Errorf("the mutant %s does not apply: %w\nIf the code has changed: bellwether-mutants --carry COMMIT, with the last commit at which the mutant applied", m.Name, err)
	}
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	overlay, err := r.Module.overlay(dir, changed)
	if err != nil {
		return err
	}
	unit := func(before mutants.Result) (mutants.Result, error) { return r.unit(ctx, m, dir, overlay, before) }
	if s.Unit {
		if err := r.score(m, mutants.Unit, changed, unit); err != nil {
			return err
		}
	}
	simulated := func(before mutants.Result) (mutants.Result, error) {
		return r.simulator(ctx, m, dir, overlay, before)
	}
	if s.Simulator && mutants.Simulated(m.Package()) && r.Module.Unseen[m.Name] == "" {
		return r.score(m, mutants.Simulator, changed, simulated)
	}
	return nil
}

// score finds and records one result, unless it is known for the same sources.
func (r *Runner) score(m *mutants.Mutant, score mutants.Score, changed map[string]string, find func(before mutants.Result) (mutants.Result, error)) error {
	hash, err := r.Module.hash(changed, foldersOf(m, score)...)
	if err != nil {
		return err
	}
	r.mu.Lock()
	before := r.known[m.Name][score]
	unit := r.known[m.Name][mutants.Unit]
	r.mu.Unlock()
	if before.Hash == hash && !r.stopsShort(before) || score == mutants.Simulator && unit.Verdict == mutants.Invalid {
		return nil
	}
	out, err := find(before)
	if err != nil {
		return err
	}
	out.Hash = hash
	return r.record(out)
}

// stopsShort reports whether a mutant has survived a smaller budget than the present one.
func (r *Runner) stopsShort(x mutants.Result) bool {
	return x.Score == mutants.Simulator && x.Verdict == mutants.Survived && x.Seconds < r.Budget.Seconds()
}

// foldersOf returns the folders on which a result depends.
func foldersOf(m *mutants.Mutant, score mutants.Score) []folder {
	if score == mutants.Simulator {
		return []folder{{dir: m.Package()}, {dir: "internal/sim", below: true}}
	}
	var list []folder
	for _, dir := range mutants.TestsOf(m.Package()) {
		list = append(list, folder{dir: dir, tests: true})
	}
	return list
}

// record appends a result to the file.
func (r *Runner) record(x mutants.Result) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, err := os.OpenFile(r.Results, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = f.WriteString(x.Line())
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	r.known.Add(x)
	if r.judged++; r.Cache != "" && r.judged%trimEvery == 0 {
		r.trim()
	}
	fmt.Fprint(r.Log, x.Line())
	return nil
}

// trimEvery is how many results there are between two times at which the cache is emptied.
const trimEvery = 500

// trim removes old entries of the Runner's build cache. A mutant leaves some MiB there.
func (r *Runner) trim() {
	r.building.Lock()
	defer r.building.Unlock()
	old, _ := filepath.Glob(filepath.Join(r.Cache, "[0-9a-f][0-9a-f]"))
	for _, dir := range old {
		os.RemoveAll(dir)
		os.Mkdir(dir, 0o777)
	}
}
