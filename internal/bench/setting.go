package bench

import (
	"context"
	"errors"
	"sync"
	"time"

	"bellwether/zk"
)

// Connect opens one session with the servers that are measured.
type Connect func(context.Context) (*zk.Client, error)

// setting describes what a run needs: sessions, and its own znode.
type setting struct {
	connect  Connect
	sessions int
	root     string
	clean    func(context.Context, *zk.Client) error // deletes the znodes below root
}

// use opens the sessions and creates the znode, runs f, and then removes both in any case.
func (s setting) use(ctx context.Context, f func([]*zk.Client) (Report, error)) (r Report, err error) {
	clients, err := connectAll(ctx, s.connect, s.sessions)
	defer closeAll(clients)
	if err != nil {
		return Report{}, err
	}
	if _, _, err := clients[0].Create(ctx, s.root, nil); err != nil {
		return Report{}, err
	}
	defer func() {
		after := context.WithoutCancel(ctx)
		err = errors.Join(err, s.clean(after, clients[0]), remove(after, clients[0], s.root))
	}()
	return f(clients)
}

// remove deletes a znode. If the znode does not exist, it returns no error.
func remove(ctx context.Context, c *zk.Client, path string) error {
	if err := c.Delete(ctx, path, zk.AnyVersion); !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	return nil
}

// inFlight calls f for 0 … n-1, with at most width calls at the same time. After an error
// it starts no further call. If several calls fail, it returns one of the errors.
func inFlight(n, width int, f func(i int) error) error {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		first error
		next  int
	)
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1, first == nil && next <= n
	}
	for range min(n, width) {
		wg.Go(func() {
			for i, ok := take(); ok; i, ok = take() {
				if err := f(i); err != nil {
					mu.Lock()
					if first == nil {
						first = err
					}
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return first
}

// dialWidth is how many connections are opened or closed at the same time.
const dialWidth = 32

// connectAll opens n sessions. The caller must close the result even after an error.
func connectAll(ctx context.Context, connect Connect, n int) ([]*zk.Client, error) {
	clients := make([]*zk.Client, n)
	err := inFlight(n, dialWidth, func(i int) (err error) {
		clients[i], err = connect(ctx)
		return err
	})
	return clients, err
}

// closeTimeout bounds the time to close one session.
const closeTimeout = 5 * time.Second

func closeAll(clients []*zk.Client) {
	inFlight(len(clients), dialWidth, func(i int) error {
		if clients[i] != nil {
			ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
			defer cancel()
			clients[i].Close(ctx) // if the close fails, the session expires
		}
		return nil
	})
}
