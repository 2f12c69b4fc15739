package shell

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"bellwether/internal/terminal"
	"bellwether/zk"
)

// session is an interactive shell, or one that reads a script: its commands share one session
// with a server.
type session struct {
	app                           // the flags of the shell; out is where commands print
	extra func() []*cobra.Command // commands that the program adds

	client  *zk.Client // nil: not connected
	events  events
	history *terminal.History
	editor  *terminal.Editor // nil: the input is not a terminal

	lines  []string // the lines of this run, for history and redo
	redone bool     // a redo runs
	failed *StatusError
	ending bool // the shell ends, so the end of its session is not reported
}

// errNotConnected is worded as in ZooKeeper's CLI.
//
//lint:ignore ST1005 the text is ZooKeeper's
var errNotConnected = &StatusError{ExitNoConnection, errors.New("Not connected: connect [HOST:PORT] opens a session")}

// sessionApp returns the app of a command of the shell.
func (s *session) sessionApp() *app {
	a := s.app
	a.shell = s
	return &a
}

// use runs f in the session of the shell.
func (s *session) use(ctx context.Context, f func(context.Context, *zk.Client) error) error {
	if s.client == nil || s.client.State().Final() {
		return errNotConnected
	}
	return requestError(f(ctx, s.client))
}

// open opens a session, and waits for its connection at most as long as wait says. The client
// keeps trying afterwards.
func (s *session) open(ctx context.Context, wait time.Duration) error {
	o, err := s.options()
	if err != nil {
		return err
	}
	c, err := zk.Open(s.servers, o)
	if err != nil {
		return usagef("--server: %w", err)
	}
	s.client = c
	s.events.follow(c)
	ctx, stop := context.WithTimeout(ctx, wait)
	defer stop()
	for st := c.State(); st.State == zk.Connecting; {
		if st, err = st.Next(ctx); err != nil {
			return nil // it is no error that the connection takes longer
		}
	}
	return nil
}

// close ends the session. Its ephemeral znodes are deleted.
func (s *session) close(ctx context.Context) {
	if s.client == nil {
		return
	}
	endSession(ctx, s.client)
	if !s.ending {
		s.events.drain()
	}
	s.client = nil
	s.events.forget()
}

// sharedOutput is the output of the shell. It is a type of its own, because a command that
// gets an Output may close it.
type sharedOutput struct{ *Output }

// newSession returns a shell with the flags of a.
func newSession(a app, extra func() []*cobra.Command) *session {
	s := &session{app: a, extra: extra}
	s.app.in = emptyInput{}
	if terminal.Is(os.Stdin) {
		s.app.in = os.Stdin
	}
	s.events.session = s
	s.events.shown = true
	return s
}

// emptyInput is the standard input of the commands of a script: the script itself must not be read by
// them.
type emptyInput struct{}

func (emptyInput) Read([]byte) (int, error) { return 0, io.EOF }
