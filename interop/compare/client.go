package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"bellwether/recipe"
	"bellwether/zk"
)

// clientWord is the argument that makes this program one of the measured clients.
const clientWord = "client"

// beClient runs a measured client. The arguments are what it does, the servers, a path, a
// number of clients, and further numbers.
func beClient(args []string) error {
	if len(args) < 4 {
		return fmt.Errorf("client: %q", args)
	}
	what, servers, path := args[0], args[1], args[2]
	var numbers []int
	for _, word := range args[3:] {
		n, err := strconv.Atoi(word)
		if err != nil {
			return err
		}
		numbers = append(numbers, n)
	}
	ctx := context.Background()
	switch n := numbers[0]; what {
	case "election", "lock":
		return passClaims(ctx, what, servers, path, n, millis(numbers[1]), millis(numbers[2]))
	case "sessions":
		return openSessions(ctx, servers, n)
	case "multis":
		return sendMultis(ctx, servers, path, n)
	case "caches":
		return keepCaches(ctx, servers, path, n, numbers[1])
	}
	return fmt.Errorf("client: %q", what)
}

func millis(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// relay measures handovers: one holder gives up, the next one takes over.
type relay struct {
	mu    sync.Mutex
	begin time.Time // when the holder gave up; zero while somebody holds
	from  time.Time // handovers that begin before this time do not count
	all   int
	took  []time.Duration
}

func (r *relay) taken() {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all++
	if r.begin.After(r.from) {
		r.took = append(r.took, now.Sub(r.begin))
	}
	r.begin = time.Time{}
}

func (r *relay) given() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begin = time.Now()
}

// passClaims lets n contenders, each with its own session, obtain the same claim and give
// it up at once, again and again.
func passClaims(ctx context.Context, what, servers, path string, n int, warmup, duration time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, waitMax+warmup+duration)
	defer cancel()
	turns := make([]func() error, n)
	r := &relay{}
	for i := range turns {
		c, err := zk.Connect(ctx, servers, nil)
		if err != nil {
			return err
		}
		if turns[i], err = turnOf(ctx, c, what, path, strconv.Itoa(i), r); err != nil {
			return err
		}
	}
	r.from = time.Now().Add(warmup)
	end := r.from.Add(duration)
	errs := make(chan error, n)
	for _, turn := range turns {
		go func() {
			for time.Now().Before(end) {
				if err := turn(); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range turns {
		if err := <-errs; err != nil {
			return err
		}
	}
	elapsed := time.Since(r.from)
	slices.Sort(r.took)
	if len(r.took) == 0 {
		return errors.New("there was no handover")
	}
	at := func(share int) int64 { return r.took[(len(r.took)-1)*share/100].Microseconds() }
	return json.NewEncoder(os.Stdout).Encode(handoverResult{r.all, len(r.took), elapsed.Seconds(), at(0), at(50), at(99)})
}

// turnOf returns a function that obtains the claim and gives it up once.
func turnOf(ctx context.Context, c *zk.Client, what, path, id string, r *relay) (func() error, error) {
	if what == "election" {
		e, err := recipe.NewElection(c, path, id, nil)
		return func() error {
			if _, err := e.Campaign(ctx); err != nil {
				return err
			}
			r.taken()
			r.given()
			return e.Resign(ctx)
		}, err
	}
	l, err := recipe.NewLock(c, path, nil)
	return func() error {
		h, err := l.Lock(ctx)
		if err != nil {
			return err
		}
		r.taken()
		r.given()
		return h.Release(ctx)
	}, err
}

// openSessions measures the memory that sessions cost.
func openSessions(ctx context.Context, servers string, n int) error {
	heap, rss, routines, err := liveMemory()
	if err != nil {
		return err
	}
	all := make([]*zk.Client, n)
	for i := range all {
		if all[i], err = zk.Connect(ctx, servers, nil); err != nil {
			return err
		}
	}
	heap2, rss2, routines2, err := liveMemory()
	if err != nil {
		return err
	}
	runtime.KeepAlive(all)
	return json.NewEncoder(os.Stdout).Encode(footprint{(heap2 - heap) / int64(n), (rss2 - rss) / int64(n), float64(routines2-routines) / float64(n)})
}

// liveMemory returns the live memory on heap and stacks, the resident memory, and the number of
// goroutines.
func liveMemory() (heap, rss int64, routines int, err error) {
	debug.FreeOSMemory()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	rss, err = resident(os.Getpid())
	return int64(m.HeapAlloc + m.StackInuse), rss, runtime.NumGoroutine(), err
}

// keepCaches follows a tree with n caches. For each line of input it reports when all of
// them show that value in the first znodes.
func keepCaches(ctx context.Context, servers, path string, n, first int) error {
	var all []*recipe.Cache
	for range n {
		c, err := zk.Connect(ctx, servers, nil)
		if err != nil {
			return err
		}
		k, err := recipe.OpenCache(ctx, c, path, nil)
		if err != nil {
			return err
		}
		all = append(all, k)
	}
	fmt.Println("@ready")
	for scan := bufio.NewScanner(os.Stdin); scan.Scan(); {
		value := scan.Text()
		errs := make(chan error, n)
		for _, k := range all {
			go func() { errs <- shows(ctx, k, value, first) }()
		}
		for range all {
			if err := <-errs; err != nil {
				return err
			}
		}
		fmt.Println("@right", value)
	}
	return nil
}

// shows waits until a cache has the value in the first znodes.
func shows(ctx context.Context, k *recipe.Cache, value string, first int) error {
	for _, err := range k.Events(ctx) {
		if err != nil {
			return err
		}
		right := 0
		for i := range first {
			if node, ok := k.Get(cachedPath(i)); ok && string(node.Data) == value {
				right++
			}
		}
		if right == first {
			return nil
		}
	}
	return k.Err()
}
