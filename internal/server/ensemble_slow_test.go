package server

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"bellwether/internal/config"
	"bellwether/internal/store"
)

// slowFS is a file system on which each fsync takes as long as the test says.
type slowFS struct {
	store.FS
	took *atomic.Int64 // ns
}

type slowFile struct {
	store.File
	fs *slowFS
}

func (f *slowFS) wait() { <-time.After(time.Duration(f.took.Load())) }

func (f *slowFS) wrap(file store.File, err error) (store.File, error) {
	if err != nil {
		return nil, err
	}
	return &slowFile{file, f}, nil
}

func (f *slowFS) Create(name string) (store.File, error) { return f.wrap(f.FS.Create(name)) }
func (f *slowFS) Append(name string) (store.File, error) { return f.wrap(f.FS.Append(name)) }

func (f *slowFS) SyncDir(dir string) error {
	f.wait()
	return f.FS.SyncDir(dir)
}

func (f *slowFile) Sync() error {
	f.fs.wait()
	return f.File.Sync()
}

// TestSlowDisksEverywhereKeepALeader: all disks are about as slow as the limit, or
// slower, and none of them hangs. The ensemble keeps a leader, and elects another one
// when this leader is killed.
func TestSlowDisksEverywhereKeepALeader(t *testing.T) {
	const limit = 100 * time.Millisecond
	for _, took := range []time.Duration{90 * time.Millisecond, 150 * time.Millisecond, 400 * time.Millisecond} {
		t.Run(fmt.Sprint(took), func(t *testing.T) {
			var pace atomic.Int64
			g := newTestEnsemble(t, 3, 0, false)
			g.change = func(c *config.Config) {
				defaults(c)
				c.Storage.StallLimit = limit
			}
			for _, m := range g.servers {
				m.fs = &slowFS{m.fs, &pace}
				g.start(m)
			}
			l := g.settled()
			epoch := l.ReplicaStatus().Epoch
			pace.Store(int64(took))
			goesOn := func(w *gap, writes int) {
				t.Helper()
				eventually(t, "writes go on", func() bool { return w.count() >= writes || w.most() > slowGapMax })
				if w.most() > slowGapMax {
					t.Fatalf("no write was acknowledged for %v", w.most())
				}
				t.Logf("longest time without an acknowledged write: %v", w.most().Round(time.Millisecond))
			}
			w, more := g.writing(100, g.servers...), g.writing(100, l)
			goesOn(w, 20)
			more.end()
			w.end()
			now := g.settled()
			if n := now.ReplicaStatus().Epoch - epoch; n > changesMax {
				t.Errorf("%d changes of leaders", n)
			}
			g.kill(now)
			w = g.writing(100, g.servers...)
			goesOn(w, 5)
			w.end()
		})
	}
}

// slowGapMax and changesMax separate an ensemble that notices that its disks are slow
// from one that changes its leader at each fsync.
const (
	slowGapMax = 40 * time.Second
	changesMax = 10
)
