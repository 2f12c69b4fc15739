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

// Work that is not to be done twice at the same time.
func ExampleLock() {
	ctx := context.Background()
	var c *zk.Client // of zk.Connect
	backup, err := recipe.NewLock(c, "/app/backup", &recipe.LockOptions{ID: "host-a"})
	if err != nil {
		log.Fatal(err)
	}
	h, err := backup.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer h.Release(ctx)

	// Work under h.Context() stops before somebody else can hold the lock. Who is
	// given the token can refuse those of older holders.
	send("http://store/backup", int64(h.Token()))
	// Fails with recipe.ErrNotHeld once somebody else does.
	if _, err := h.Do(ctx, zk.SetOp("/app/last-backup", []byte("today"), zk.AnyVersion)); err != nil {
		log.Print(err)
	}
}

// The same in one call: the lock is released when the function has returned.
func ExampleLock_Do() {
	ctx := context.Background()
	var backup *recipe.Lock // of NewLock
	err := backup.Do(ctx, func(ctx context.Context, h *recipe.Hold) error {
		send("http://store/backup", int64(h.Token()))
		_, err := h.Do(ctx, zk.SetOp("/app/last-backup", []byte("today"), zk.AnyVersion))
		return err
	})
	if errors.Is(err, recipe.ErrNotHeld) {
		log.Print("somebody else may have held the lock before this was done: ", err)
	}
}

// Who does not want to wait asks once, or for a while.
func ExampleLock_TryLock() {
	ctx := context.Background()
	var l *recipe.Lock // of NewLock
	h, err := l.TryLock(ctx)
	if errors.Is(err, recipe.ErrHeld) {
		soon, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		h, err = l.Lock(soon) // no bid is left behind if the time is over
	}
	if err != nil {
		log.Fatal(err)
	}
	defer h.Release(ctx)
}

// A callee that locks what its caller may have locked takes the caller's hold.
func ExampleHold_Again() {
	var h *recipe.Hold // of Lock.Lock
	inner, err := h.Again()
	if err != nil {
		log.Fatal(err) // the hold is over
	}
	defer inner.Release(context.Background()) // the lock stays with h
}

// Many may read while nobody writes.
func ExampleReadWriteLock() {
	ctx := context.Background()
	var c *zk.Client // of zk.Connect
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

// No more than three downloads at once, over all machines.
func ExampleSemaphore() {
	ctx := context.Background()
	var c *zk.Client // of zk.Connect
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

// A transfer needs both accounts, and another one the other way round must
// not wait for this one while this one waits for it.
func ExampleMultiLock() {
	ctx := context.Background()
	var from, to *recipe.Lock // of NewLock
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

// The resource itself refuses a holder that was overtaken: here one whose
// request was stopped on its way while others held the lock.
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

// A store that takes the token with each request.
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
