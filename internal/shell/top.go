package shell

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"bellwether/internal/terminal"
)

const topLong = `Show the servers of --server, their busiest connections and their most watched paths, again and again: role, requests per
second, latency, zxid, how many transactions a server is behind the leader, sessions, watches and disk. It works with every ZooKeeper
server; a figure that a server does not report is shown as -. Requests and connections come from the words srvr and cons, the other
figures from mntr and dirs, and the paths from wchp, which ZooKeeper answers only if 4lw.commands.whitelist contains them. A server
with more than 10,000 watches is not asked for the paths.

Keys: q quits, s sorts the connections by the next column (requests, latency, waiting), p or blank pauses, r refreshes at once.
If the output is not a terminal, or with -n or -o json, plain listings are printed, by default one. The first one comes
after --delay, because rates need two measurements.

Exit status: 0 done, 2 usage, 4 no server answers.`

// top is the state of the command top.
type top struct {
	*app
	delay  time.Duration
	times  int
	order  topOrder
	paused bool
	before topSample
	now    topSample
}

// delayMin is the shortest time between two measurements.
const delayMin = 100 * time.Millisecond

func newTop(base maker) *cobra.Command {
	t := &top{app: base()}
	c := &cobra.Command{
		Use:     "top",
		Short:   "show servers and busy connections live",
		Long:    topLong,
		Example: "  bellwether top\n  bellwether top --server zk1,zk2,zk3 -d 5s\n  bellwether top -n 1 -o json",
		Args:    argCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if t.delay < delayMin || t.times < 0 {
				return usagef("want --delay %v or more, and --times 0 or more", delayMin)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			err := t.run(ctx)
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		},
	}
	t.serverFlags(c)
	t.outputFlag(c)
	c.Flags().DurationVarP(&t.delay, "delay", "d", 2*time.Second, "time between two measurements")
	c.Flags().IntVarP(&t.times, "times", "n", 0, "end after this number of listings; 0: never at a terminal, otherwise 1")
	return c
}

func (t *top) run(ctx context.Context) error {
	t.now = t.sample(ctx)
	if t.now.answered() == 0 {
		return &StatusError{ExitNoConnection, errors.New("no server answers: check --server, or ask one with status")}
	}
	if t.json() || t.times > 0 || !terminal.CanEdit() {
		return t.listings(ctx, max(t.times, 1))
	}
	screen, err := terminal.OpenScreen(os.Stdin, os.Stdout)
	if err != nil {
		return err
	}
	return errors.Join(t.live(ctx, screen), screen.Close())
}

// listings prints plain listings.
func (t *top) listings(ctx context.Context, n int) error {
	for i := range n {
		if err := wait(ctx, t.delay); err != nil {
			return err
		}
		t.measure(ctx)
		if t.json() {
			if err := printJSON(t.out, t.report()); err != nil {
				return err
			}
			continue
		}
		text := t.text(terminalWidth(t.out), 0)
		if i+1 < n {
			text += "\n"
		}
		if _, err := io.WriteString(t.out, text); err != nil {
			return err
		}
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// measure takes the next sample.
func (t *top) measure(ctx context.Context) { t.before, t.now = t.now, t.sample(ctx) }

// live shows the figures until q, a signal, or the end of the terminal.
func (t *top) live(ctx context.Context, screen *terminal.Screen) error {
	tick := time.NewTicker(t.delay)
	defer tick.Stop()
	first := time.NewTimer(min(t.delay, time.Second/2)) // so that rates are shown soon
	defer first.Stop()
	for {
		columns, rows := screen.Size()
		if err := screen.Draw(t.text(columns, rows)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case key, ok := <-screen.Keys:
			if !ok || t.key(ctx, key) {
				return nil
			}
		case <-screen.Resized:
		case <-first.C:
			t.measure(ctx)
		case <-tick.C:
			if !t.paused {
				t.measure(ctx)
			}
		}
	}
}

// key obeys a key; it returns true if the key ends the command.
func (t *top) key(ctx context.Context, key byte) bool {
	switch key {
	case 'q', 'Q', 0x03, 0x04:
		return true
	case 's', 'S':
		t.order = (t.order + 1) % topOrders
	case 'p', 'P', ' ':
		t.paused = !t.paused
	case 'r', 'R':
		t.measure(ctx)
	}
	return false
}
