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

// hold creates ephemeral znodes in a session that lasts until the script ends. They are sequential, unless the
// path ends with a dot: then the path before the dot is the whole name.
func hold(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 3, "hold SERVER ID PATH…")
	ctx, cancel := context.WithTimeout(context.Background(), waitMax)
	defer cancel()
	c, err := zk.Connect(ctx, args[0], nil)
	ts.Check(err)
	ts.Defer(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel() // the server may have ended, so Close must not wait for it
		c.Close(ended)
	})
	for _, path := range args[2:] {
		for i := range path {
			if i > 0 && path[i] == '/' {
				c.Create(ctx, path[:i], nil) // an error is expected if the znode exists
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

// garbage opens a number of connections, one after the other. On each it sends an HTTP request, which no
// ZooKeeper client sends, and waits until the server closes the connection.
func garbage(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 2, "garbage SERVER N")
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	for range n {
		conn, err := net.Dial("tcp", args[0])
		ts.Check(err)
		ts.Check(conn.SetDeadline(time.Now().Add(waitMax)))
		_, err = io.WriteString(conn, "GET / HTTP/1.1\r\n\r\n")
		ts.Check(err)
		io.Copy(io.Discard, conn) // a reset also ends the connection
		conn.Close()
	}
}
