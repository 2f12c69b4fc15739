package main

import (
	"context"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"bellwether/zk"
)

// hold makes ephemeral znodes; the client is closed with the script. A path
// that ends with a dot is made as it stands before it.
func hold(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 3, "hold SERVER ID PATH…")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := zk.Connect(ctx, args[0], nil)
	ts.Check(err)
	ts.Defer(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel() // the server may be gone
		c.Close(ended)
	})
	for _, path := range args[2:] {
		for i := range path {
			if i > 0 && path[i] == '/' {
				c.Create(ctx, path[:i], nil) // it may be there
			}
		}
		name, whole := strings.CutSuffix(path, ".")
		options := []zk.CreateOption{zk.Ephemeral}
		if !whole {
			options = append(options, zk.Sequential)
		}
		_, _, err := c.Create(ctx, name, []byte(args[1]), options...)
		ts.Check(err)
	}
}

// garbage sends what no client sends, each time on a connection of its own,
// and waits for its end.
func garbage(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 2, "garbage SERVER N")
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	for range n {
		conn, err := net.Dial("tcp", args[0])
		ts.Check(err)
		ts.Check(conn.SetDeadline(time.Now().Add(patience)))
		_, err = io.WriteString(conn, "GET / HTTP/1.1\r\n\r\n")
		ts.Check(err)
		io.Copy(io.Discard, conn) // a reset is an end too
		conn.Close()
	}
}
