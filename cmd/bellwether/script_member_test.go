package main

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// nameSeats finds places for N servers: $lineN is the line of server N, and $atN its address for clients.
func nameSeats(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 1, "seats N")
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	all, err := seats(n)
	ts.Check(err)
	for _, s := range all {
		ts.Setenv(fmt.Sprintf("line%d", s.id), s.line)
		ts.Setenv(fmt.Sprintf("at%d", s.id), s.client)
	}
}

// startMember starts the server ID in its own directory, which keeps what is there. Its zoo.cfg has the given lines.
func startMember(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 3, "member NAME ID LINE…")
	id, err := strconv.Atoi(args[1])
	ts.Check(err)
	file, err := prepareMember(ts.MkAbs(args[0]), id, args[2:])
	ts.Check(err)
	start(ts, false, []string{args[0], "bellwether", "serve", "--config", strings.TrimPrefix(file, ts.MkAbs(".")+"/")})
}

// answerSrvr answers srvr like a server of a version, in a mode, with a zxid; $NAME is its address. It knows no other
// word.
func answerSrvr(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 4, "answers NAME VERSION MODE ZXID")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Setenv(args[0], ln.Addr().String())
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				word := make([]byte, 4)
				if _, err := io.ReadFull(conn, word); err == nil && string(word) == "srvr" {
					fmt.Fprintf(conn, "Zookeeper version: %s, built on 2022-02-25\nMode: %s\nZxid: %s\n", args[1], args[2], args[3])
				}
			})
		}
	})
	ts.Defer(func() {
		ln.Close()
		serving.Wait()
	})
}
