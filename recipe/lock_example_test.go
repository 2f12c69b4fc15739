package recipe_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"strconv"
	"time"

	"bellwether/recipe"
	"bellwether/zk"
)

// Work that must not be done twice at the same time.
func ExampleLock() {
	ctx := context.Background()
	var c *zk.Client // from zk.Connect
	backup, err := recipe.NewLock(c, "/app/backup", &recipe.LockOptions{ID: "host-a"})
	if err != nil {
		log.Fatal(err)
	}
	h, err := backup.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer h.Release(ctx)

	// Work under h.Context() stops before another client can hold the lock. A resource that is given the token
	// can refuse requests of older holders.
	send("http://store/backup", int64(h.Token()))
	// Fails with recipe.ErrNotHeld if another client holds the lock.
	if _, err := h.Do(ctx, zk.SetOp("/app/last-backup", []byte("today"), zk.AnyVersion)); err != nil {
		log.Print(err)
	}
}

// The same in one call: Do releases the lock when the function has returned.
func ExampleLock_Do() {
	ctx := context.Background()
	var backup *recipe.Lock // from NewLock
	err := backup.Do(ctx, func(ctx context.Context, h *recipe.Hold) error {
		send("http://store/backup", int64(h.Token()))
		_, err := h.Do(ctx, zk.SetOp("/app/last-backup", []byte("today"), zk.AnyVersion))
		return err
	})
	if errors.Is(err, recipe.ErrNotHeld) {
		log.Print("somebody else may have held the lock before this was done: ", err)
	}
}

// A program that does not want to wait tries once, or waits for a limited time.
func ExampleLock_TryLock() {
	ctx := context.Background()
	var l *recipe.Lock // from NewLock
	h, err := l.TryLock(ctx)
	if errors.Is(err, recipe.ErrHeld) {
		soon, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		h, err = l.Lock(soon) // no bid is left if the time is over
	}
	if err != nil {
		log.Fatal(err)
	}
	defer h.Release(ctx)
}

// A function whose caller already holds the lock takes another Hold of the same bid.
func ExampleHold_Again() {
	var h *recipe.Hold // from Lock.Lock
	inner, err := h.Again()
	if err != nil {
		log.Fatal(err) // the hold is over
	}
	defer inner.Release(context.Background()) // the lock stays with h
}

// Many clients read while nobody writes.
func ExampleReadWriteLock() {
	ctx := context.Background()
	var c *zk.Client // from zk.Connect
	l, err := recipe.NewReadWriteLock(c, "/app/index", nil)
	if err != nil {
		log.Fatal(err)
	}
	reader, err := l.RLock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer reader.Release(ctx)
}

// At most three downloads at a time, over all machines.
func ExampleSemaphore() {
	ctx := context.Background()
	var c *zk.Client // from zk.Connect
	downloads, err := recipe.NewSemaphore(c, "/app/downloads", 3, nil)
	if err != nil {
		log.Fatal(err)
	}
	lease, err := downloads.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Release(ctx)
}

// A transfer needs both accounts. Two transfers in opposite directions must not wait for each other.
func ExampleMultiLock() {
	ctx := context.Background()
	var from, to *recipe.Lock // from NewLock
	both, err := recipe.NewMultiLock(from, to)
	if err != nil {
		log.Fatal(err)
	}
	h, err := both.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer h.Release(ctx)
	_, err = h.Do(ctx, // only while both are held
		zk.SetOp("/accounts/1", []byte("90"), zk.AnyVersion),
		zk.SetOp("/accounts/2", []byte("110"), zk.AnyVersion))
	if err != nil {
		log.Print(err)
	}
}

// The resource itself refuses an old holder: here one whose request was delayed while others held the
// lock.
func ExampleTokenGate() {
	var gate recipe.TokenGate
	for _, token := range []zk.Zxid{0x500000007, 0x500000009, 0x500000007} {
		if err := gate.Admit(token); err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println("written under", token)
	}
	// Output:
	// written under 0x500000007
	// written under 0x500000009
	// token 0x500000007 is older than 0x500000009, which has been seen
}

// A resource that checks the token of each request.
func ExampleTokenGate_Admit() {
	var gate recipe.TokenGate
	http.HandleFunc("/backup", func(w http.ResponseWriter, r *http.Request) {
		token, err := strconv.ParseInt(r.Header.Get("Token"), 10, 64)
		if err == nil {
			err = gate.Admit(zk.Zxid(token))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
		}
	})
}
