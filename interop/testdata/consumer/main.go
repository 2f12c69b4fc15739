// Command consumer is a program outside of the module: it needs nothing but the
// public packages and the standard library.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

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

// run writes a node and reads it back.
func run(ctx context.Context, servers, path string) error {
	c, err := zk.Connect(ctx, servers, nil)
	if err != nil {
		return err
	}
	if _, _, err := c.Create(ctx, path, []byte("written by a consumer")); err != nil {
		return err
	}
	data, _, err := c.Get(ctx, path)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", data)
	return c.Close(ctx)
}
