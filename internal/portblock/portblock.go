// Package portblock finds ports for servers that are started later and that keep their
// ports while they are down.
//
// The ports lie outside the range that the system assigns to outgoing connections and to
// port 0. Several processes may start servers at the same time, so each process has its
// own block of ports for as long as it lives. [Free] goes through the block in turn.
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
	portsPerBlock = 500 // ports of a block; the process listens on the first one for as long as it lives

	// The blocks lie between these ports, above the well-known ports.
	lowest, highest = 10_000, 65_500
)

var block struct {
	sync.Mutex
	held  net.Listener // keeps other processes out of the block; nil: the block is shared
	start int
	taken int
}

// Free returns n different ports at host on which nobody listens at the moment. It is
// safe for concurrent use.
func Free(host string, n int) ([]int, error) {
	block.Lock()
	defer block.Unlock()
	if block.start == 0 {
		hold(host)
	}
	var ports []int
	var last error
	for range portsPerBlock - 1 {
		if len(ports) == n {
			break
		}
		block.taken = block.taken%(portsPerBlock-1) + 1
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
		return nil, fmt.Errorf("found only %d of %d free ports at %s from port %d on: %w", len(ports), n, host, block.start, last)
	}
	return ports, nil
}

func address(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// hold takes a random block that no other process holds. A process that has ended may have
// found ports for servers that are down now; a random block makes it unlikely that this
// process gets the same ports. If all blocks are held, hold shares one.
func hold(host string) {
	low, high := assignedRange()
	fit := blocks(low, high)
	if len(fit) == 0 { // the system assigns every port
		fit = blocks(0, 0)
	}
	rand.Shuffle(len(fit), func(i, j int) { fit[i], fit[j] = fit[j], fit[i] })
	block.start, block.taken = fit[0], rand.IntN(portsPerBlock-1)
	for _, start := range fit {
		l, err := net.Listen("tcp", address("127.0.0.1", start))
		if err != nil && !errors.Is(err, syscall.EADDRINUSE) { // the machine has no such address
			l, err = net.Listen("tcp", address(host, start))
		}
		if err == nil {
			block.held, block.start = l, start
			return
		}
	}
}

// blocks returns the first port of each block that has no port from low to high.
func blocks(low, high int) []int {
	var all []int
	for start := lowest; start+portsPerBlock <= highest; start += portsPerBlock {
		if start > high || start+portsPerBlock <= low {
			all = append(all, start)
		}
	}
	return all
}

// assignedRange returns the first and the last port that the system assigns itself.
func assignedRange() (low, high int) {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err == nil {
		_, err = fmt.Sscan(string(text), &low, &high)
	}
	if err != nil {
		return 32768, 65535
	}
	return low, high
}
