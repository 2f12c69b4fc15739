// Package portblock finds ports for servers that are started later, and whose
// ports stay theirs while they are down.
//
// The ports lie outside of those that the system hands out for outgoing
// connections and for port 0. Processes that start servers run side by side, so
// each has a block of ports of its own for as long as it lives: [Free] takes
// them in turn.
package portblock

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
)

const (
	each = 500 // ports of a block; its first is listened on for as long as the process lives

	// The blocks lie between these, behind the ports that programs are known by.
	lowest, highest = 10_000, 65_500
)

var block struct {
	sync.Mutex
	held  net.Listener // what keeps others off; nil: the block is shared
	start int
	taken int
}

// Free returns n ports, each different, that nobody listens on at host just now.
// Any goroutine may call it.
func Free(host string, n int) ([]int, error) {
	block.Lock()
	defer block.Unlock()
	if block.start == 0 {
		hold(host)
	}
	var ports []int
	var last error
	for range each - 1 {
		if len(ports) == n {
			break
		}
		block.taken = block.taken%(each-1) + 1
		port := block.start + block.taken
		l, err := net.Listen("tcp", address(host, port))
		if err != nil {
			last = err
			continue
		}
		l.Close()
		ports = append(ports, port)
	}
	if len(ports) < n {
		return nil, fmt.Errorf("%d of %d free ports at %s from %d on: %w", len(ports), n, host, block.start, last)
	}
	return ports, nil
}

func address(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// hold takes a block that no other process has, any of them: what was found for
// servers that are down now, by a process that has ended, is seldom found again.
// Where all are taken one is shared.
func hold(host string) {
	low, high := handedOut()
	fit := blocks(low, high)
	if len(fit) == 0 { // the system hands out every port
		fit = blocks(0, 0)
	}
	rand.Shuffle(len(fit), func(i, j int) { fit[i], fit[j] = fit[j], fit[i] })
	block.start, block.taken = fit[0], rand.IntN(each-1)
	for _, start := range fit {
		l, err := net.Listen("tcp", address("127.0.0.1", start))
		if err != nil && !errors.Is(err, syscall.EADDRINUSE) { // no such address here
			l, err = net.Listen("tcp", address(host, start))
		}
		if err == nil {
			block.held, block.start = l, start
			return
		}
	}
}

// blocks are the first ports of those without any from low to high.
func blocks(low, high int) []int {
	var all []int
	for start := lowest; start+each <= highest; start += each {
		if start > high || start+each <= low {
			all = append(all, start)
		}
	}
	return all
}

// handedOut are the first and last port that the system hands out.
func handedOut() (low, high int) {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err == nil {
		_, err = fmt.Sscan(string(text), &low, &high)
	}
	if err != nil {
		return 32768, 65535
	}
	return low, high
}
