package zk

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
)

// portDefault is the client port of servers whose port the list does not name.
const portDefault = "2181"

// server is one entry of the list: a host and a port, or an SRV name.
type server struct {
	host string // without brackets
	port string // empty for an SRV name
}

func (s server) String() string {
	if s.port == "" {
		return s.host
	}
	return net.JoinHostPort(s.host, s.port)
}

// parseServers reads "host:port,[v6]:port,_srv.name/chroot".
func parseServers(text string) (list []server, chroot string, err error) {
	hosts := text
	if i := strings.IndexByte(text, '/'); i >= 0 {
		hosts, chroot = text[:i], text[i:]
		if chroot == "/" {
			chroot = ""
		} else if !validPath(chroot, false) {
			return nil, "", fmt.Errorf("chroot %q is not a valid path", chroot)
		}
	}
	for _, entry := range strings.Split(hosts, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		s, err := parseServer(entry)
		if err != nil {
			return nil, "", err
		}
		list = append(list, s)
	}
	if len(list) == 0 {
		return nil, "", fmt.Errorf("server list %q names no server; want host:port,host:port/chroot", text)
	}
	return list, chroot, nil
}

func parseServer(entry string) (server, error) {
	if strings.HasPrefix(entry, "_") && validHost(entry) {
		return server{host: entry}, nil
	}
	host, port := entry, portDefault
	bare, open := strings.CutPrefix(entry, "[")
	bare, shut := strings.CutSuffix(bare, "]")
	switch {
	case open && shut, !open && !shut && strings.Contains(entry, "::") && net.ParseIP(entry) != nil:
		host = bare
	case strings.Contains(entry, ":"):
		var err error
		if host, port, err = net.SplitHostPort(entry); err != nil {
			return server{}, fmt.Errorf("server %q: want host:port, IPv6 addresses as [address]:port", entry)
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || !validHost(host) {
		return server{}, fmt.Errorf("server %q: want host:port with a port from 1 to 65535", entry)
	}
	return server{host, port}, nil
}

// validHost reports whether a text is a host name, or an address with or without a zone.
func validHost(host string) bool {
	if ip, _, _ := strings.Cut(host, "%"); strings.Contains(host, ":") {
		return net.ParseIP(ip) != nil && !strings.ContainsAny(host, "[]")
	}
	return host != "" && !strings.ContainsAny(host, "[]\"' \t\r\n\x00")
}

// shuffle spreads clients over the servers.
func shuffle(list []server) {
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

// address is one place to dial; TLS verifies name.
type address struct {
	name, ip, port string
}

func (a address) String() string { return net.JoinHostPort(a.ip, a.port) }

// resolve looks the server up. It is called at each dial, because addresses of names change.
func (c *Client) resolve(ctx context.Context, s server) ([]address, error) {
	if s.port == "" {
		return c.resolveSRV(ctx, s.host)
	}
	return c.resolveHost(ctx, s.host, s.port)
}

func (c *Client) resolveHost(ctx context.Context, host, port string) ([]address, error) {
	ip, _, _ := strings.Cut(host, "%") // the zone is part of the address
	if net.ParseIP(ip) != nil {
		return []address{{host, host, port}}, nil
	}
	ips, err := c.opt.Resolver.LookupHost(ctx, host)
	if err != nil {
		return nil, err
	}
	var out []address
	for _, ip := range ips {
		out = append(out, address{host, ip, port})
	}
	rand.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out, nil
}

// resolveSRV asks for the records of a whole name such as _zookeeper._tcp.example.com.
func (c *Client) resolveSRV(ctx context.Context, name string) ([]address, error) {
	_, records, err := c.opt.Resolver.LookupSRV(ctx, "", "", name)
	if err != nil {
		return nil, err
	}
	var out []address
	for _, r := range records {
		found, e := c.resolveHost(ctx, strings.TrimSuffix(r.Target, "."), strconv.Itoa(int(r.Port)))
		if e != nil {
			err = e // one unknown name does not matter if others are known
			continue
		}
		out = append(out, found...)
	}
	if len(out) == 0 && err == nil {
		err = fmt.Errorf("%s has no SRV records", name)
	}
	if len(out) > 0 {
		err = nil
	}
	return out, err
}
