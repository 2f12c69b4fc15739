package main

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// hostPorts returns the addresses of servers in a comma-separated list, which is the value of a flag.
func hostPorts(flag, list string) ([]string, error) {
	var all []string
	for entry := range strings.SplitSeq(list, ",") {
		address, err := hostPort(flag, entry)
		if err != nil {
			return nil, err
		}
		all = append(all, address)
	}
	return all, nil
}

// hostPort returns the address of a server without blanks around it.
func hostPort(flag, text string) (string, error) {
	text = strings.TrimSpace(text)
	host, number, err := net.SplitHostPort(text)
	port, bad := strconv.ParseUint(number, 10, 16)
	if err != nil || host == "" || bad != nil || port == 0 {
		return "", fmt.Errorf("%s %q: want HOST:PORT, as in zk1:2181 or [::1]:2181", flag, text)
	}
	return text, nil
}
