package config

import (
	"slices"
	"strconv"
	"strings"
)

var rateKeys = []key{
	{name: "clientRequestsPerSecond", live: true, kind: system, form: number, def: "0", max: rateMax,
		effect: "How many requests each client address may send in a second. Further requests wait. After a pause, as many as one second allows may come at once. Each operation of a multi counts. Heartbeats and the end of a session never wait. 0 means no limit. ZooKeeper ignores this key.",
		into:   func(c *Config) any { return &c.Limits.Rates.Requests }},
	{name: "clientBytesPerSecond", live: true, kind: system, form: number, unit: "bytes", def: "0", max: rateMax,
		effect: "How many bytes of requests each client address may send in a second. Further requests wait.",
		into:   func(c *Config) any { return &c.Limits.Rates.Bytes }},
	{name: "pathRequestsPerSecond", live: true, kind: system, form: pathRates, says: "none",
		effect: "How many requests of all clients of this server together are accepted in a second for a path and the znodes below it, as in /app:1000,/app/jobs:50. Further requests wait. If several paths of the list contain a znode, the longest one counts.",
		into:   func(c *Config) any { return &c.Limits.Rates.PathRequests }},
	{name: "pathBytesPerSecond", live: true, kind: system, form: pathRates, unit: "bytes", says: "none",
		effect: "How many bytes of requests for a path and the znodes below it are accepted in a second. Further requests wait.",
		into:   func(c *Config) any { return &c.Limits.Rates.PathBytes }},
	{name: "clientIPv6Prefix", live: true, kind: system, form: number, def: "64", min: 1, max: 128,
		effect: "IPv6 addresses that agree in this many leading bits count as one client address in these limits (but not in maxClientCnxns). ZooKeeper ignores this key.",
		into:   func(c *Config) any { return &c.Limits.IPv6Bits }},
	{name: "loginDelayMax", live: true, kind: system, form: number, unit: "ms", def: "1000", min: 0, max: 60_000,
		effect: "Longest delay of a login from an address from which others have failed (docs/security.md); 0 means no delay. ZooKeeper ignores this key.",
		into:   func(c *Config) any { return &c.Limits.LoginDelay }},
}

const (
	rateMax  = 1_000_000_000 // highest number of requests or bytes in a second
	pathsMax = 100           // paths in one list: each request is compared with them
)

// PathRate is the limit for a znode and all znodes below it.
type PathRate struct {
	Path      string // absolute, without a / at its end unless it is the root
	PerSecond int
}

// parsePathRates parses a list such as /a:100,/b:5. The longest path comes first.
func parsePathRates(value string) ([]PathRate, bool) {
	var all []PathRate
	for _, item := range splitList(value) {
		at := strings.LastIndexByte(item, ':')
		if at < 0 {
			return nil, false
		}
		n, err := strconv.Atoi(strings.TrimSpace(item[at+1:]))
		r := PathRate{strings.TrimSpace(item[:at]), n}
		same := func(o PathRate) bool { return o.Path == r.Path }
		if err != nil || n < 1 || n > rateMax || !isZnodePath(r.Path) || slices.ContainsFunc(all, same) {
			return nil, false
		}
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b PathRate) int { return len(b.Path) - len(a.Path) })
	return all, len(all) <= pathsMax
}

// isZnodePath reports whether a text is an absolute path with no empty part.
func isZnodePath(p string) bool {
	return p == "/" || strings.HasPrefix(p, "/") && !strings.HasSuffix(p, "/") && !strings.Contains(p, "//")
}
