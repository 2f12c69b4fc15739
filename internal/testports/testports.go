// Package testports finds ports for servers that tests start, where a port must
// be known before its server is up and stays its own while it is down. Only
// tests import it.
//
// The ports lie below those that systems hand out for outgoing connections and
// for port 0. Test processes run side by side, and a server takes its ports
// seconds after they were found, so each process has a block of ports of its
// own, and takes them in turn.
package testports

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
)

const (
	first  = 20000
	each   = 1000 // ports of a block; its first is held for as long as the process lives
	blocks = 12
)

var block struct {
	sync.Mutex
	held  net.Listener
	start int
	taken int
}

// Free returns n ports, each different, that nobody listens on at host just now.
// Any goroutine may call it.
func Free(host string, n int) ([]int, error) {
	block.Lock()
	defer block.Unlock()
	if err := hold(); err != nil {
		return nil, err
	}
	var ports []int
	var last error
	for range each {
		if len(ports) == n {
			return ports, nil
		}
		block.taken = block.taken%(each-1) + 1
		port := block.start + block.taken
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			last = err
			continue
		}
		l.Close()
		ports = append(ports, port)
	}
	return nil, fmt.Errorf("%d of %d free ports at %s from %d on: %w", len(ports), n, host, block.start, last)
}

// hold takes a block that no other process has.
func hold() error {
	var errs []error
	for i := 0; block.held == nil; i++ {
		if i == blocks {
			return fmt.Errorf("every block of ports is taken: %w", errors.Join(errs...))
		}
		start := first + i*each
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(start)))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		block.held, block.start = l, start
	}
	return nil
}
