package zk

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/internal/inorder"
)

// calling is a slog.Handler that calls a function with each message.
type calling struct{ f func(msg string) }

func (h calling) Enabled(context.Context, slog.Level) bool      { return true }
func (h calling) Handle(_ context.Context, r slog.Record) error { h.f(r.Message); return nil }
func (h calling) WithAttrs([]slog.Attr) slog.Handler            { return h }
func (h calling) WithGroup(string) slog.Handler                 { return h }

// endings are the ways to end a client.
var endings = map[string]func(c *Client){
	"Close":  func(c *Client) { c.Close(context.Background()) },
	"Detach": func(c *Client) { c.Detach() },
}

// TestCloseWithinAFunctionOfTheOptions: Dial and the handler of a Logger may close the
// client when it connects, reconnects or loses its connection. Close does not wait for
// the function that called it, and still ends the session. Detach leaves the session
// alive.
func TestCloseWithinAFunctionOfTheOptions(t *testing.T) {
	for name, end := range endings {
		for _, place := range []string{"first dial", "dial again", "connected", "connection lost", "call begins", "state changed"} {
			t.Run(name+"/"+place, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					e := newEnsemble(t)
					ready := make(chan struct{})
					var c *Client
					var once sync.Once
					var took atomic.Int64
					finish := func() {
						once.Do(func() {
							<-ready
							began := time.Now()
							end(c)
							took.Store(int64(time.Since(began) + 1))
						})
					}
					var dials atomic.Int32
					o := Options{
						Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
							n := dials.Add(1)
							if place == "first dial" || place == "dial again" && n == 2 {
								finish()
							}
							return e.dial(ctx, network, address)
						},
						Logger: slog.New(calling{func(msg string) {
							if msg == place {
								finish()
							}
						}}),
						Hooks: calledHooks{
							begins: func() {
								if place == "call begins" {
									finish()
								}
							},
							changes: func(s Status) {
								if place == "state changed" && s.State == Connected {
									finish()
								}
							},
						},
					}
					var err error
					if c, err = Open("10.0.0.1", &o); err != nil {
						t.Fatal(err)
					}
					close(ready)
					switch place {
					case "dial again", "connection lost":
						waitFor(t, c, Connected)
						e.cut()
					case "call begins":
						waitFor(t, c, Connected)
						c.Sync(t.Context(), "/")
					}
					waitFor(t, c, Closed)
					c.Close(context.Background())
					time.Sleep(time.Second)
					if got := time.Duration(took.Load()); got == 0 || got > 2*functionTime {
						t.Errorf("it took %v, want %v at most", got, functionTime)
					}
					if had, closed := e.opened(), slices.Contains(e.log(), "closeSession "); closed != (had && name == "Close") {
						t.Errorf("a session was opened: %v; it was closed: %v", had, closed)
					}
				})
			})
		}
	}
}

// opened reports whether a session was opened.
func (e *ensemble) opened() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sessions > 0
}

// TestStuckLoggerDelaysNothing: a client whose Logger blocks can still reconnect and be
// closed.
func TestStuckLoggerDelaysNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		stall := make(chan struct{})
		var records atomic.Int32
		c := e.connect(Options{Logger: slog.New(calling{func(string) { <-stall; records.Add(1) }})})
		for range inorder.Max {
			e.cut()
			waitFor(t, c, Connected)
			if _, _, err := c.Get(t.Context(), "/x"); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		if err := c.Close(t.Context()); err != nil || time.Since(began) > functionTime {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		close(stall)
		time.Sleep(time.Second)
		if n := records.Load(); n < inorder.Max || n > inorder.Max+10 {
			t.Errorf("%d records, want %d and few more", n, inorder.Max)
		}
	})
}

// TestCloseWaitsForTheLog: everything that was logged before Close returned has reached the Logger,
// unless the Logger blocks.
func TestCloseWaitsForTheLog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		var l lines
		c := e.connect(Options{Logger: l.logger()})
		if err := c.Close(t.Context()); err != nil || !l.has("connected") {
			t.Errorf("%v, logged: %q", err, l.all())
		}
	})
}

// TestDialThatIgnoresItsContext: a Dial that ignores its context delays nothing: Close returns, and a
// connection that Dial returns later is closed.
func TestDialThatIgnoresItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		stall := make(chan struct{})
		late := make(chan net.Conn, 1)
		c, err := Open("10.0.0.1", &Options{Dial: func(context.Context, string, string) (net.Conn, error) {
			<-stall
			conn, err := e.dial(context.Background(), "tcp", "10.0.0.1:2181")
			late <- conn
			return conn, err
		}})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		began := time.Now()
		if err := c.Close(t.Context()); err != nil || time.Since(began) > functionTime {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		close(stall)
		time.Sleep(time.Second)
		if _, err := (<-late).Write([]byte{0}); err == nil {
			t.Error("the late connection is open")
		}
		if e.opened() {
			t.Error("a session was opened after the end of the client")
		}
	})
}

// calledHooks calls functions of a test.
type calledHooks struct {
	begins  func()
	changes func(Status)
}

func (h calledHooks) CallBegins(context.Context, OpCode, string) func(CallEnd) {
	h.begins()
	return nil
}

func (h calledHooks) StateChanged(s Status) { h.changes(s) }
