package interop

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"bellwether/interop/target"
	"bellwether/zk"
)

// TestZooKeeperFindsTheSentTreeRight: a ZooKeeper server with an empty disk gets a snapshot from a Bellwether leader, which
// carries out writes meanwhile, so that the snapshot contains transactions that follow behind it. ZooKeeper counts no difference
// between its tree and the leader's.
func TestZooKeeperFindsTheSentTreeRight(t *testing.T) {
	a, b := target.Apache, target.Bellwether
	e := target.EnsembleFor(t, target.EnsembleOptions{Kinds: []target.Kind{a, b, b}, Extra: map[string]string{"initLimit": "50", "syncLimit": "20"}})
	if leader, err := e.AwaitWhole(idsTimeout); err != nil || leader == 0 {
		t.Fatal(leader, err)
	}
	c, err := zk.Connect(t.Context(), e.Servers[1].Addr+","+e.Servers[2].Addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.WithoutCancel(t.Context()))
	const znodes, writers = 5000, 16
	each := func(do func(ctx context.Context, i int) error) {
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for i := w; i < znodes; i += writers {
					if err := do(t.Context(), i); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
	}
	each(func(ctx context.Context, i int) error {
		_, _, err := c.Create(ctx, fmt.Sprintf("/n%d", i), []byte("first"))
		return err
	})
	learner := e.Servers[0]
	for range 5 {
		learner.Kill()
		if err := os.RemoveAll(filepath.Join(learner.Data, "version-2")); err != nil {
			t.Fatal(err)
		}
		stop, written := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(written)
			each(func(ctx context.Context, i int) error {
				for {
					select {
					case <-stop:
						return nil
					default:
					}
					if _, err := c.Set(ctx, fmt.Sprintf("/n%d", i), []byte("later"), -1); err != nil {
						return err
					}
				}
			})
		}()
		err := learner.Begin()
		if err == nil {
			_, err = e.AwaitWhole(idsTimeout)
		}
		close(stop)
		<-written
		if err != nil {
			t.Fatal(err)
		}
		if text, err := learner.Word("mntr"); err != nil || !strings.Contains(text, "zk_digest_mismatches_count\t0\n") {
			t.Fatalf("it counts digest mismatches: %v\n%s", err, text)
		}
	}
}
