package admin

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"bellwether/internal/server"
)

// interval allows one call in a given time.
type interval struct {
	mu   sync.Mutex
	last time.Time // when a call was last allowed; zero: never
}

// allow reports whether a call may be carried out now.
func (v *interval) allow(every time.Duration) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	if !v.last.IsZero() && now.Sub(v.last) <= every {
		return false
	}
	v.last = now
	return true
}

// refuse makes an answer with a status and a reason. ZooKeeper logs the reason instead.
func (c *call) refuse(code int, format string, args ...any) object {
	c.code, c.err = code, fmt.Sprintf(format, args...)
	return nil
}

// needsLastZxid is why snapshot and restore do not work without the block at the end of
// snapshots that ZooKeeper 3.9 added.
const needsLastZxid = "the command needs serializeLastProcessedZxid.enabled=true and digest.enabled=true"

// snapshot writes a snapshot and sends it. The headers say what it contains.
func snapshot(a *Admin, c *call) object {
	conf := c.server.Config()
	switch {
	case !conf.Admin.Snapshot:
		return c.refuse(http.StatusServiceUnavailable, "the command is disabled by admin.snapshot.enabled=false")
	case !conf.Storage.LastProcessedZxid || !conf.Storage.Digest:
		return c.refuse(http.StatusInternalServerError, needsLastZxid)
	case !a.snapshots.allow(conf.Admin.RateInterval / 1000): // ZooKeeper 3.9 takes the ms for µs
		c.server.OnDemand().SnapshotLimited.Add(1)
		return c.refuse(http.StatusTooManyRequests, "a snapshot was taken just now; admin.rateLimiterIntervalInMS limits how often")
	}
	file, err := c.server.TakeSnapshot(c.http.Context())
	if err == nil {
		c.stream.headers = [][2]string{{"last_zxid", file.Zxid.String()}, {"snapshot_size", strconv.FormatInt(file.Size, 10)}}
		if text, given := c.argument("streaming"); given && !strings.EqualFold(text, "true") {
			return nil
		}
		c.stream.size = file.Size
		c.stream.body, err = c.server.OpenSnapshot(file)
	}
	if err != nil {
		c.server.OnDemand().SnapshotErrors.Add(1)
		return c.refuse(http.StatusInternalServerError, "%v", err)
	}
	return nil
}

// restore replaces the history of a standalone server by the snapshot in the body.
func restore(a *Admin, c *call) object {
	conf := c.server.Config()
	figures := c.server.OnDemand()
	switch {
	case !conf.Admin.Restore:
		return c.refuse(http.StatusServiceUnavailable, "the command is disabled by admin.restore.enabled=false")
	case !conf.Storage.LastProcessedZxid || !conf.Storage.Digest:
		return c.refuse(http.StatusInternalServerError, needsLastZxid)
	case c.http.ContentLength == 0:
		return c.refuse(http.StatusBadRequest, "the body must be an uncompressed snapshot")
	case !conf.Standalone():
		return c.refuse(http.StatusConflict, "%v", server.ErrRestoreMember)
	case !a.restores.allow(conf.Admin.RateInterval):
		figures.RestoreLimited.Add(1)
		return c.refuse(http.StatusTooManyRequests, "a restore was tried just now; admin.rateLimiterIntervalInMS limits how often")
	}
	z, err := c.server.Restore(c.body)
	if err != nil {
		figures.RestoreErrors.Add(1)
		return c.refuse(http.StatusInternalServerError, "%v", err)
	}
	return object{{"last_zxid", int64(z)}}
}
