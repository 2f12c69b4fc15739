package recipe

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/zk"
)

// These tests give a function that fails to each recipe that calls the application. Its error must reach
// the caller, or the log if the caller goes on.

var errApplication = errors.New("the disk is full")

// failing is a Participant whose methods return the given errors.
type failing struct{ prepare, commit, abort error }

func (f failing) Prepare(context.Context, Tx) error { return f.prepare }
func (f failing) Commit(context.Context, Tx) error  { return f.commit }
func (f failing) Abort(context.Context, Tx) error   { return f.abort }

// TestPrepareErrorIsReported checks that Join returns the error of Prepare together with the decision.
func TestPrepareErrorIsReported(t *testing.T) {
	for name, p := range map[string]failing{
		"prepare":           {prepare: errApplication},
		"prepare and abort": {prepare: errApplication, abort: errors.New("the other disk is full too")},
		"commit":            {commit: errApplication},
	} {
		bubble(t, func(t *testing.T, s *fakeServer) {
			c := s.connect(zk.Options{})
			co := made(NewCoordinator(c, txRoot, nil))
			site := made(NewSite(s.connect(zk.Options{}), txRoot, "s", p, nil))
			tx := co.Path()
			committed := after(func() error { _, err := co.Commit(t.Context(), tx, []string{"s"}, nil, nil); return err })
			d, err := site.Join(t.Context(), tx)
			if !errors.Is(err, errApplication) || p.abort != nil && !errors.Is(err, p.abort) {
				t.Errorf("%s: join returned %v, %v", name, d, err)
			}
			var voted *PrepareError
			if p.prepare != nil && (d != Abort || !errors.As(err, &voted) || voted.Path != tx) {
				t.Errorf("%s: %v, %v", name, d, err)
			}
			if err := <-committed; err != nil {
				t.Errorf("%s: commit: %v", name, err)
			}
		})
	}
}

// TestServeLogsWhyItVotedToAbort also checks that Serve goes on.
func TestServeLogsWhyItVotedToAbort(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		var r recorder
		o := withReports(&CommitOptions{}, &r)
		site := made(NewSite(s.connect(zk.Options{}), txRoot, "s", failing{prepare: errApplication}, o))
		ctx, cancel := context.WithCancel(t.Context())
		served := after(func() error { return site.Serve(ctx) })
		co := made(NewCoordinator(s.connect(zk.Options{}), txRoot, nil))
		for range 2 {
			if d, err := co.Commit(t.Context(), co.Path(), []string{"s"}, nil, nil); d != Abort || err != nil {
				t.Errorf("%v, %v", d, err)
			}
		}
		still(t, served)
		cancel()
		if err := <-served; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		synctest.Wait()
		n := 0
		for _, rec := range r.logs {
			if rec.Level == slog.LevelWarn && strings.Contains(rec.Message, errApplication.Error()) {
				n++
			}
		}
		if n != 2 {
			t.Errorf("logged %d times", n)
		}
	})
}

// TestErrorAfterTheLossIsReported checks that an error that the application returns after the loss of its part
// ends Run.
func TestErrorAfterTheLossIsReported(t *testing.T) {
	lose := func(s *fakeServer, c *zk.Client, h *Handle) {
		s.expire(c.Session().ID)
		<-h.Context().Done()
	}
	for name, run := range map[string]func(ctx context.Context, s *fakeServer, c *zk.Client) error{
		"work": func(ctx context.Context, s *fakeServer, c *zk.Client) error {
			w := made(NewWork(c, "/app/work", nil))
			if err := w.Submit(ctx, "task", nil); err != nil {
				return err
			}
			return w.Run(ctx, "a", func(_ context.Context, _ Task, h *Handle) error { lose(s, c, h); return errApplication })
		},
		"partitioner": func(ctx context.Context, s *fakeServer, c *zk.Client) error {
			p := made(NewPartitioner(c, "/app/parts", "a", []string{"one"}, nil))
			return p.Run(ctx, func(_ context.Context, _ string, h *Handle) error { lose(s, c, h); return errApplication })
		},
		"lead": func(ctx context.Context, s *fakeServer, c *zk.Client) error {
			e := made(NewElection(c, "/app/election", "a", nil))
			return e.Lead(ctx, func(_ context.Context, h *Handle) error { lose(s, c, h); return errApplication })
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *fakeServer) {
				s.put("/app", "")
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := run(ctx, s, s.connect(zk.Options{})); !errors.Is(err, errApplication) {
					t.Errorf("run returned %v", err)
				}
			})
		})
	}
}
