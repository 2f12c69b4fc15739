package measure

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"bellwether/internal/mutants"
)

const (
	simulatorProgram = "./cmd/bellwether-sim"
	// seedSeconds is how much processor time one seed may take. It takes less than one
	// second without a mutant.
	seedSeconds = 60
	// seedWait is how long one seed may take altogether.
	seedWait = 10 * time.Minute
)

// What kills a mutant in place of a rule.
const (
	crash = "crash" // the program ends by itself
	hang  = "hang"  // the program does not end
)

// simulator judges a mutant by the checkers of the simulator: seed after seed, from 1 on,
// until a rule is broken or the budget of processor time is spent. If before names a seed that
// has killed the mutant, that seed comes first.
func (r *Runner) simulator(ctx context.Context, m *mutants.Mutant, dir, overlay string, before mutants.Result) (mutants.Result, error) {
	out := mutants.Result{Mutant: m.Name, Score: mutants.Simulator, Verdict: mutants.Survived}
	program := filepath.Join(dir, "bellwether-sim")
	if text, err := r.goCommand(ctx, "build", "-overlay="+overlay, "-ldflags=-s -w", "-o", program, simulatorProgram); err != nil {
		if ctx.Err() == nil && isCompilerError(text) {
			out.Verdict = mutants.Invalid
			return out, nil
		}
		return out, fmt.Errorf("build the simulator with %s: %w\n%s", m.Name, err, text)
	}
	next, spent := 1, time.Duration(0)
	known, err := strconv.Atoi(before.By)
	again := err == nil && before.Verdict == mutants.Killed
	for spent < r.Budget {
		seed := next
		if again {
			seed, again = known, false
		} else {
			next++
		}
		rule, took, err := r.seed(ctx, program, m.Package(), seed)
		if err != nil {
			return out, err
		}
		spent += took
		out.Seconds = spent.Seconds()
		if rule == "" {
			continue
		}
		switch own, _, err := r.seed(ctx, r.sound, m.Package(), seed); {
		case err != nil:
			return out, err
		case own != "":
			fmt.Fprintf(r.Log, "seed %d kills no mutant, because it breaks %s without one: correct that\n", seed, own)
		default:
			out.Verdict, out.Where, out.By = mutants.Killed, rule, strconv.Itoa(seed)
			return out, nil
		}
	}
	out.By = strconv.Itoa(next - 1)
	return out, nil
}

// soundSeeds is how many seeds must break no rule without a mutant before the first one is judged.
const soundSeeds = 5

// buildSimulator builds the simulator without a mutant in a folder, and plays the first seeds.
func (r *Runner) buildSimulator(ctx context.Context, dir string) error {
	r.sound = filepath.Join(dir, "bellwether-sim")
	if text, err := r.goCommand(ctx, "build", "-ldflags=-s -w", "-o", r.sound, simulatorProgram); err != nil {
		return fmt.Errorf("build the simulator: %w\n%s", err, text)
	}
	for seed := 1; seed <= soundSeeds; seed++ {
		rule, _, err := r.seed(ctx, r.sound, "", seed)
		if err != nil {
			return err
		}
		if rule != "" {
			return fmt.Errorf("seed %d breaks %s without a mutant, so no score would mean anything: correct that first", seed, rule)
		}
	}
	return nil
}

var brokenRule = regexp.MustCompile(` breaks (\w+)`)

// recipesOf holds the recipes that use a package, for its mutants: a seed without such a recipe could not show their faults.
var recipesOf = map[string][]string{
	"internal/claim":          {"election", "queue", "counter and ids", "lock", "barrier", "registration", "configuration of a leader"},
	"internal/claim/barrier":  {"double barrier", "double barrier of kazoo", "barrier"},
	"internal/claim/cache":    {"caches"},
	"internal/claim/commit":   {"two-phase commit"},
	"internal/claim/lines":    {"election", "lock", "read-write lock", "semaphore", "multi-locks"},
	"internal/claim/queues":   {"queue", "queue with acknowledgement"},
	"internal/claim/registry": {"registration"},
	"internal/claim/share":    {"partitioner", "work"},
	"internal/claim/value":    {"counter and ids", "configuration of a leader"},
}

// recipeFlags are further flags for mutants of recipes, of which each seed gets one after the other. Enough clients
// compete in each run. In some runs they are careless, and in some their terms are short.
var recipeFlags = [][]string{
	{"--candidates", "5"},
	{"--candidates", "5", "--careless", "1"},
	{"--candidates", "5", "--term-ms", "200"},
	{"--candidates", "5", "--term-ms", "200", "--careless", "1"},
}

// carelessFor holds the packages whose faults show mostly with careless clients. Their mutants get such clients in every second seed.
var carelessFor = map[string]bool{"internal/driver": true, "internal/replica": true, "internal/tree": true}

// flagsOf returns the flags of the simulator for mutants of a package: the seed, its clients, one of its recipes after
// the other, and for each of them one set of further flags after the other.
func flagsOf(folder string, seed int) []string {
	flags := []string{"--seed", strconv.Itoa(seed)}
	if carelessFor[folder] && seed%2 == 0 {
		flags = append(flags, "--careless", "1")
	}
	if recipes := recipesOf[folder]; recipes != nil {
		flags = append(flags, "--recipe", recipes[seed%len(recipes)])
		flags = append(flags, recipeFlags[seed/len(recipes)%len(recipeFlags)]...)
	}
	return flags
}

// seed runs one seed for mutants of a package. It returns the rule that was broken, "" if none was, and the
// processor time.
func (r *Runner) seed(ctx context.Context, program, folder string, seed int) (rule string, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, seedWait)
	defer cancel()
	script := fmt.Sprintf(`ulimit -v %d; ulimit -t %d; exec "$0" "$@"`, memoryKiB, seedSeconds)
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", script, program}, flagsOf(folder, seed)...)...)
	text, err := cmd.CombinedOutput()
	if s := cmd.ProcessState; s != nil {
		took = s.UserTime() + s.SystemTime()
	}
	exit := (*exec.ExitError)(nil)
	switch {
	case err == nil:
		return "", took, nil
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded), !errors.As(err, &exit):
		return "", took, errors.Join(err, ctx.Err())
	case exit.ExitCode() < 0: // a signal: of the limit of processor time, or of the context
		return hang, took, nil
	}
	if found := brokenRule.FindSubmatch(text); found != nil {
		return string(found[1]), took, nil
	}
	return crash, took, nil
}
