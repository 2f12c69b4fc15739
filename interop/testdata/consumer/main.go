// Command consumer is a program outside of the module: it needs nothing but the
// public packages and the standard library.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"bellwether/recipe"
	"bellwether/zk"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := run(ctx, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run leads an election once and writes a node as the leader.
func run(ctx context.Context, servers, path string) error {
	c, err := zk.Connect(ctx, servers, nil)
	if err != nil {
		return err
	}
	if _, _, err := c.Create(ctx, path, nil); err != nil {
		return err
	}
	e, err := recipe.NewElection(c, path+"/election", "consumer", nil)
	if err != nil {
		return err
	}
	err = e.Lead(ctx, func(ctx context.Context, h *recipe.Handle) error {
		_, err := h.Do(ctx, zk.SetOp(path, []byte("written by a consumer"), 0))
		return err
	})
	if err != nil {
		return err
	}
	data, _, err := c.Get(ctx, path)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", data)
	return c.Close(ctx)
}
