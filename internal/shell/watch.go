package shell

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"bellwether/wire"
	"bellwether/zk"
)

const watchLong = `Print each event at PATH as a line of JSON, starting when the line with "watch" is printed. PATH need not exist.

  {"time":…,"state":"connected","session":"0x…","server":"host:port"}    the state of the session has changed
  {"time":…,"watch":"begun","path":"/app"}                                the watch is set: all later events are printed
  {"time":…,"event":"NodeDataChanged","path":"/app/a","zxid":"0x…"}       an event; zxid if the server sends it (3.9)
  {"time":…,"watch":"gap","zxid":"0x…"}                                   the connection was lost: events after zxid may be missing
  {"time":…,"watch":"anew","path":"/app"}                                 the session was lost and the watch set again: events may be missing

After "gap" or "anew", read the current state again. Servers before 3.6 do not support such watches.

Exit status: 0 done, 1 failed, 2 usage, 4 no connection, 121 fewer than --count events within --timeout, 128+n ended by a
signal, or 141 if the reader of the output has closed the pipe.`

// watcher is the state of the command watch.
type watcher struct {
	*runner
	path        string
	recursive   bool
	count, seen int
	timeout     time.Duration
	stream      *zk.Stream
	begun       bool
}

func newWatch(base maker) *cobra.Command {
	w := &watcher{runner: &runner{app: base()}}
	c := &cobra.Command{
		Use:   "watch PATH",
		Short: "print the events at a znode, or in a subtree, as lines of JSON",
		Long:  watchLong,
		Example: "  bellwether watch --recursive /app | jq -r 'select(.event).path'\n" +
			"  bellwether watch --count 1 --timeout 1m /app/ready",
		Args: argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if w.path = args[0]; w.count < 0 || w.timeout < 0 {
				return usagef("want --count and --timeout 0 or more")
			}
			return w.open(cmd.Context(), w.prepare, func(zc *zk.Client) error { return w.timed(cmd.Context(), zc) })
		},
	}
	w.serverFlags(c)
	w.sessionFlags(c)
	f := c.Flags()
	f.BoolVarP(&w.recursive, "recursive", "R", false, "events of the whole subtree, without those of child lists")
	f.IntVar(&w.count, "count", 0, "end after this number of events; 0: never")
	f.DurationVar(&w.timeout, "timeout", 0, "end after this time; 0: never")
	return c
}

func (w *watcher) prepare(*zk.Client) error {
	if !wire.ValidPath(w.path) {
		return cliError(&zk.OpError{Op: "addWatch", Path: w.path, Err: zk.ErrBadArguments})
	}
	return nil
}

// errEnough ends a watch that has printed --count events.
var errEnough = errors.New("enough")

// timed prints events for --timeout, until a signal, or until the reader closes the pipe.
func (w *watcher) timed(ctx context.Context, zc *zk.Client) error {
	late := w.late()
	if w.timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, w.timeout, late)
		defer stop()
	}
	ctx, stop := untilUnread(ctx, w.out)
	defer stop()
	err := w.interruptible(ctx, func(ctx context.Context) error { return w.follow(ctx, zc) })
	if errors.Is(err, errEnough) || w.count == 0 && errors.Is(err, late) {
		return nil
	}
	return cliError(err)
}

// late returns the error for the end of --timeout.
func (w *watcher) late() error {
	return &StatusError{ExitNotObtained, fmt.Errorf("fewer than %s within %v", Count(w.count, "event"), w.timeout)}
}

// follow prints states and events until an error; errEnough is the normal one.
func (w *watcher) follow(ctx context.Context, zc *zk.Client) error {
	s := zc.State()
	if err := w.state(ctx, zc, s); err != nil {
		return err
	}
	for {
		var ready <-chan struct{}
		if w.stream != nil {
			ready = w.stream.Ready()
		}
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.Changed():
			if s, err = s.Next(ctx); err == nil {
				err = w.state(ctx, zc, s)
			}
		case <-ready:
			err = w.event(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// watchLine is one line of output.
type watchLine struct {
	Time    string `json:"time"`
	State   string `json:"state,omitempty"`
	Session string `json:"session,omitempty"`
	Server  string `json:"server,omitempty"`
	Error   string `json:"error,omitempty"`
	Watch   string `json:"watch,omitempty"`
	Event   string `json:"event,omitempty"`
	Path    string `json:"path,omitempty"`
	Zxid    string `json:"zxid,omitempty"`
}

func (w *watcher) print(l watchLine) error {
	if l.Time == "" {
		l.Time = Instant(time.Now().UnixMilli())
	}
	return printJSON(w.out, l)
}

// state prints a state, and sets the watch if there is a connection and no watch.
func (w *watcher) state(ctx context.Context, zc *zk.Client, s zk.Status) error {
	l := watchLine{Time: Instant(s.Since.UnixMilli()), State: s.State.String(), Server: s.Server}
	if s.Session != 0 {
		l.Session = s.Session.String()
	}
	if s.Err != nil {
		l.Error = s.Err.Error()
	}
	if err := w.print(l); err != nil {
		return err
	}
	switch {
	case s.Final() || s.State == zk.AuthFailed:
		return fmt.Errorf("the session has ended: %v", s.State)
	case s.State == zk.Connected && w.stream == nil:
		return w.set(zk.InSession(ctx, s.Session), zc)
	}
	return nil
}

// set sets the watch. If the connection is lost meanwhile, the next one sets it.
func (w *watcher) set(ctx context.Context, zc *zk.Client) error {
	mode := wire.WatchPersistent
	if w.recursive {
		mode = wire.WatchPersistentRecursive
	}
	stream, err := zc.AddWatch(ctx, w.path, mode)
	switch {
	case errors.Is(err, zk.ErrConnectionLoss), errors.Is(err, zk.ErrSessionExpired):
		return nil
	case errors.Is(err, zk.ErrUnsupported):
		return fmt.Errorf("the server is older than 3.6 and does not support persistent watches: %w", err)
	case err != nil:
		return err
	}
	l := watchLine{Watch: "begun", Path: w.path}
	if w.begun {
		l.Watch = "anew"
	}
	w.stream, w.begun = stream, true
	return w.print(l)
}

// event prints the next event.
func (w *watcher) event(ctx context.Context) error {
	e, err := w.stream.Next(ctx)
	if errors.Is(err, zk.ErrSessionExpired) {
		w.stream = nil
		return nil // the next session's status follows
	}
	if err != nil {
		return err
	}
	l := watchLine{Event: e.Type.String(), Path: e.Path}
	if e.Zxid > 0 {
		l.Zxid = e.Zxid.String()
	}
	if e.Type == wire.EventNone {
		return w.print(watchLine{Watch: "gap", Zxid: l.Zxid})
	}
	if err := w.print(l); err != nil {
		return err
	}
	if w.seen++; w.seen == w.count {
		return errEnough
	}
	return nil
}
