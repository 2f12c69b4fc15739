package store

import (
	"fmt"
	"path/filepath"
	"slices"
)

// myidName is the file in dataDir with a member's id. The store only checks whether it
// exists.
const myidName = "myid"

// suspect notes signs that somebody has removed the history or a part of it. It does not
// refuse the start: a start that finds nothing begins a new history, and one that finds
// no log ends at the snapshot. That is right on a new or restored server.
func (l *loader) suspect() error {
	on, err := l.s.epochsOnDisk()
	if err != nil {
		return err
	}
	s, member := l.s, on.hasCurrent || on.hasAccepted
	switch {
	case l.res.Empty && l.res.Marked:
	case l.res.Empty:
		l.suspectEmpty(on)
	case slices.Contains(s.made, s.logDir):
		l.note("%s was missing and was created; if there were transaction logs in it, their transactions after %v are lost: "+
			"if they are elsewhere, stop the server and put them back", s.logDir, l.res.LastZxid)
	case !member && l.res.Snapshot > 0 && l.res.Txns == 0 && !l.nameSeen:
		l.note("no log in %s reaches %s; unless this directory was restored from a snapshot alone, the newest logs are missing, "+
			"and their transactions after %v are lost: if they are elsewhere, stop the server and put them back",
			s.logDir, filepath.Base(l.res.SnapshotPath), l.res.LastZxid)
	}
	return nil
}

// suspectEmpty notes signs that there was a history, if none was found. A myid file is
// such a sign, because nothing else remains if somebody has removed version-2. A file
// named initialize confirms that this is a first start.
func (l *loader) suspectEmpty(on epochsOnDisk) {
	s := l.s
	why := ""
	switch myid := filepath.Join(s.opts.DataDir, myidName); {
	case on.Current > 0 || on.Accepted > 0:
		why = fmt.Sprintf("%s and %s in %s are %d and %d", currentEpochName, acceptedEpochName, s.snapDir, on.Current, on.Accepted)
	case len(s.made) == 1 && len(s.dirs()) == 2:
		why = fmt.Sprintf("%s was missing and the other directory was not", s.made[0])
	case s.exists(myid):
		why = myid + " exists"
	default:
		return
	}
	l.note("there is no history in %s, although %s: that is correct on the first start of this server; "+
		"if it has served before, its data was removed, or dataDir or dataLogDir names another directory", s.snapDir, why)
}

func (s *Store) exists(path string) bool {
	_, err := s.fs.Stat(path)
	return err == nil
}
