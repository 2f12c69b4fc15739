package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bellwether/internal/bench"
	"bellwether/zk"
)

// benchRun is one run of a measurement.
type benchRun struct {
	*app
	kind     string
	results  string // the directory for the files; empty: none
	settings map[string]string
	servers  []bench.ServerVersion
}

// newBenchRun adds the flag for the results. It must be called before flags are added that are
// not settings of the measurement, because those may be passwords.
func newBenchRun(base maker, c *cobra.Command) (*benchRun, func()) {
	b := &benchRun{app: base(), kind: c.Name(), settings: map[string]string{}}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	c.Flags().StringVar(&b.results, "results", "", "directory for the files with the results (JSON, HdrHistogram's log, SVG)")
	_ = c.MarkFlagDirname("results") // the flag exists
	c.Args = argCount(0, 0)
	return b, func() {
		for _, name := range names {
			b.settings[name] = c.Flags().Lookup(name).Value.String()
		}
	}
}

// run runs the measurement, prints its reports and writes its files, also if only the clean-up after the measurement
// has failed.
func (b *benchRun) run(ctx context.Context, measure func(context.Context) ([]*bench.Report, error)) error {
	began := time.Now()
	files, err := b.createFiles(began)
	if err != nil {
		return fmt.Errorf("--results: %w", err)
	}
	reports, err := measure(ctx)
	if len(reports) > 0 {
		return errors.Join(b.publish(began, files, reports), err)
	}
	if files != nil {
		err = errors.Join(err, files.Discard())
	}
	return err
}

// publish prints reports and writes them to files, if there are any.
func (b *benchRun) publish(began time.Time, files *bench.Files, reports []*bench.Report) error {
	printed := b.printReports(reports)
	if files == nil {
		return printed
	}
	result := bench.NewResult(began, reports)
	result.Settings, result.Servers = b.settings, b.servers
	if err := files.Save(result, reports); err != nil {
		return fmt.Errorf("the results were not saved: %w", err)
	}
	b.say("results: " + files.String())
	return printed
}

func (b *benchRun) printReports(reports []*bench.Report) error {
	for _, r := range reports {
		if err := b.print(r.JSON(), fmt.Sprint(r)); err != nil {
			return err
		}
	}
	return nil
}

func (b *benchRun) createFiles(began time.Time) (*bench.Files, error) {
	if b.results == "" {
		return nil, nil
	}
	return bench.CreateFiles(b.results, b.kind, began)
}

// benchServers makes the command of a measurement of running servers. The measurement uses the
// setting, which the command fills in.
func benchServers(base maker, c *cobra.Command, s *bench.Setting, m func(*app) measurement) *cobra.Command {
	b, keepSettings := newBenchRun(base, c)
	g := &benchGuard{app: b.app}
	c.Flags().BoolVarP(&g.yes, "yes", "y", false, "do not ask, and measure servers that have other clients")
	c.Flags().StringVar(&g.path, "path", "/", "an existing znode below which the run makes its own znode")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		keepSettings()
		b.settings["session-timeout"] = b.session.String()
		if err := g.check(); err != nil {
			return err
		}
		s.Connect, s.Root = b.connect, g.root()
		var err error
		if s.Raw, err = b.raw(); err != nil {
			return err
		}
		if err := m(b.app).Check(); err != nil {
			return usagef("%w", err)
		}
		servers, err := g.examine(cmd.Context()) // nothing is written before it returns, so a signal may end the process
		if err != nil {
			return err
		}
		ctx, stop := interruptions(cmd.Context(), func(signal string) { b.say(signal + ": deleting the run's znodes; a second signal leaves them") })
		defer stop.end()
		b.servers = servers
		s.Servers = bench.Listeners(addressesOf(servers))
		s.Hurry = stop.again
		err = b.run(ctx, func(ctx context.Context) ([]*bench.Report, error) { return m(b.app).Run(ctx) })
		return stop.status(b.explain(err))
	}
	b.serverFlags(c)
	b.sessionFlags(c)
	b.outputFlag(c)
	addExitStatuses(c)
	addSignalStatuses(c)
	return c
}

// addSignalStatuses adds the statuses of an interrupted measurement to a help text that ends with the exit statuses.
func addSignalStatuses(c *cobra.Command) {
	c.Long = strings.Replace(c.Long, "4 no connection.", "4 no connection, 128 and the number of the\nsignal: interrupted.", 1)
}

func addressesOf(servers []bench.ServerVersion) (all []string) {
	for _, server := range servers {
		all = append(all, server.Address)
	}
	return all
}

// explain rewords the error of a run. What the run has left comes last.
func (b *benchRun) explain(err error) error {
	var left *bench.LeftError
	if !errors.As(err, &left) {
		return reworded(err)
	}
	command := "bellwether deleteall --server " + b.app.servers
	if b.shell != nil {
		command = "deleteall"
	}
	remedy := fmt.Errorf("%w; to delete them: %s %s", left, command, left.Root)
	cause := without(err, left)
	if cause == nil {
		return &StatusError{ExitFailed, remedy}
	}
	cause = reworded(cause)
	status := &StatusError{Status: ExitFailed}
	errors.As(cause, &status)
	return &StatusError{status.Status, fmt.Errorf("%w\n%w", cause, remedy)}
}

// reworded is requestError, except that an error keeps what was added to a StatusError.
func reworded(err error) error {
	var s *StatusError
	if errors.As(err, &s) {
		return &StatusError{s.Status, err}
	}
	if errors.Is(err, zk.ErrNoAuth) {
		return fmt.Errorf("%w; give --auth, or --path of a znode below which everybody may create znodes", requestError(err))
	}
	return requestError(err)
}

// without returns err without one of the errors that were joined to it; nil: there is no other.
func without(err error, left *bench.LeftError) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	var rest []error
	for _, e := range joined.Unwrap() {
		if !errors.Is(e, left) {
			rest = append(rest, e)
		} else if inner := without(e, left); inner != nil {
			rest = append(rest, inner)
		}
	}
	return errors.Join(rest...)
}

// interruption follows the signals that end a measurement.
type interruption struct {
	again  chan struct{} // closed by the second signal
	end    func()
	signal func() os.Signal // the first signal; nil: none has come
}

// interruptions returns a context that the first signal ends. The measurement then cleans up.
// say is told so.
func interruptions(ctx context.Context, say func(string)) (context.Context, *interruption) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	again, done := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	var first os.Signal
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case s := <-signals:
			mu.Lock()
			first = s
			mu.Unlock()
			say(s.String())
			cancel()
		case <-done:
			return
		}
		select {
		case <-signals:
			close(again)
		case <-done:
		}
	})
	return ctx, &interruption{again, func() {
		signal.Stop(signals)
		close(done)
		waiting.Wait()
		cancel()
	}, func() os.Signal {
		mu.Lock()
		defer mu.Unlock()
		return first
	}}
}

// status returns the error of a measurement, with the status of a signal that has ended it.
func (i *interruption) status(err error) error {
	s, ok := i.signal().(syscall.Signal)
	if !ok || err == nil {
		return err
	}
	text := errors.New("interrupted")
	var left *bench.LeftError
	if errors.As(err, &left) {
		text = fmt.Errorf("interrupted\n%w", err)
	}
	return &StatusError{128 + int(s), text}
}
