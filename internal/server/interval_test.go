package server

import (
	"testing"
	"time"

	"bellwether/wire"
)

// TestContainerIntervalBelowATick: containers and TTL znodes are deleted at the
// configured interval, even if a tick is much longer.
func TestContainerIntervalBelowATick(t *testing.T) {
	o := Options{Config: testConfig()}
	o.Config.TickTime, o.Config.Tree.ContainerInterval = 4*eventTimeout, 20*time.Millisecond
	o.Config.MinSessionTimeout, o.Config.MaxSessionTimeout = time.Minute, time.Hour
	o.Config.Tree.ExtendedTypes = true
	c := start(t, o).connect()
	container := *create("/container", "")
	container.Flags = wire.FlagContainer
	c.must(wire.OpCreateContainer, &container, nil)
	c.create("/container/child", "")
	c.must(wire.OpDelete, &wire.PathVersionRequest{Path: "/container/child", Version: -1}, nil)
	ttl := wire.CreateTTLRequest{CreateRequest: *create("/ttl", ""), TTL: 1}
	ttl.Flags = wire.FlagPersistentTTL
	c.must(wire.OpCreateTTL, &ttl, nil)
	for _, path := range []string{"/container", "/ttl"} {
		eventually(t, path+" is gone", func() bool {
			return c.call(wire.OpExists, &wire.PathWatchRequest{Path: path}, nil).Err == wire.ErrNoNode
		})
	}
}
