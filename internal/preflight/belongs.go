package preflight

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"bellwether/wire"
)

// CurrentEpoch reads the epoch of a data directory; ok is false if it has none.
func CurrentEpoch(dataDir string) (epoch wire.Epoch, ok bool, err error) {
	file := filepath.Join(dataDir, "version-2", "currentEpoch")
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0, false, fmt.Errorf("%s: %q is not a number", file, strings.TrimSpace(string(text)))
	}
	return wire.Epoch(n), true, nil
}

// aheadMax is how many transactions a server's log may have at most that the ensemble has not carried out yet, when
// they were logged before the ensemble was asked. ZooKeeper lets clients wait for 1,000 requests (globalOutstandingLimit).
const aheadMax = 10_000

// Belongs compares data with the servers that were asked after they had been read: those of another ensemble, or of
// another state of this one, must not be taken over. epoch is the epoch of the data directory after that; ok is false
// if it has none.
func (d *Data) Belongs(l *Live, dir string, epoch wire.Epoch, ok bool) []Finding {
	lead := l.head()
	if lead == nil || d.Check.LastZxid < 0 {
		return nil
	}
	now := zxidOf(lead)
	wrong := func(what string) []Finding {
		return []Finding{{Prevents, dir, what, "these are the data of another ensemble, or of another time: writes would be lost, or the servers would differ",
			"give the zoo.cfg of the running server, whose data directory it names"}}
	}
	last := d.Check.LastZxid
	switch {
	case last.Epoch() > now.Epoch(), last.Epoch() == now.Epoch() && int64(last)-int64(now) > aheadMax:
		return wrong(fmt.Sprintf("the data reach %v, and %s is at %v", last, lead.Server, now))
	case l.c.Standalone():
		return nil
	case ok && epoch != now.Epoch() && l.Serves(l.c.Ensemble.ID):
		return wrong(fmt.Sprintf("currentEpoch is %d, and the epoch of %s is %d", epoch, lead.Server, now.Epoch()))
	}
	return nil
}

// head returns the leader, or the standalone server; nil: it is unknown.
func (l *Live) head() *Member {
	switch {
	case len(l.leaders) == 1:
		return l.leaders[0]
	case l.c.Standalone() && len(l.members) == 1 && l.members[0].Srvr.Mode == "standalone":
		return &l.members[0]
	}
	return nil
}

// zxidOf returns the last transaction that a server has carried out; -1: it does not say.
func zxidOf(m *Member) wire.Zxid {
	n, err := strconv.ParseInt(m.Srvr.Zxid, 0, 64)
	if err != nil {
		return -1
	}
	return wire.Zxid(n)
}
