package server

import (
	"fmt"
	"sync"
	"testing"

	"bellwether/internal/store"
	"bellwether/wire"
)

// TestFiguresWhileLoading shows under the race detector that the figures can be read while a server loads its data.
func TestFiguresWhileLoading(t *testing.T) {
	o := Options{Config: testConfig(), FS: store.NewMem(1)}
	o.Config.Storage.SnapCount = 100
	first := start(t, o)
	c := first.connect()
	for i := range 1000 {
		c.must(wire.OpCreate, &wire.CreateRequest{Path: fmt.Sprintf("/%d", i), ACL: wire.OpenACL()}, nil)
	}
	if err := first.end(); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		s, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		var reader sync.WaitGroup
		reader.Go(func() {
			for loading := true; loading; {
				select {
				case <-s.Ready():
					loading = false
				default:
				}
				s.Tree().Counts()
			}
		})
		r := run(t, s)
		reader.Wait()
		if n := r.figure("znode_count"); n < 1000 {
			t.Errorf("%v znodes after the load", n)
		}
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLoadText shows what the log says about a long load, also if more is read than expected or
// the expected size is not known.
func TestLoadText(t *testing.T) {
	for _, tc := range []struct {
		read, total int64
		want        string
	}{
		{0, 10 << 20, "loading: 0% of 10 MiB read"},
		{5 << 20, 10 << 20, "loading: 50% of 10 MiB read"},
		{30 << 20, 10 << 20, "loading: 99% of 10 MiB read"},
		{1 << 20, 0, "loading: 1 MiB read"},
		{1, 2, "loading: 50% of 1 MiB read"},
	} {
		if got := loadText(tc.read, tc.total); got != tc.want {
			t.Errorf("%d of %d: %q, want %q", tc.read, tc.total, got, tc.want)
		}
	}
}
