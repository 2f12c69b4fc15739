package server

import (
	"errors"
	"fmt"
	"time"
)

// errEmptyNotAllowed: no history, and none may begin here.
var errEmptyNotAllowed = errors.New("the data directory has no history and db.autocreate is false; " +
	"create an empty file named initialize in dataDir, or check that dataDir is the right one")

// load fills the tree from disk. What is not on disk yet gets there as a
// snapshot, so that there is always one that the log continues.
func (s *Server) load() error {
	start := time.Now()
	loader := s.tree.Loader()
	res, err := s.store.Load(loader)
	if err != nil {
		return err
	}
	for _, n := range res.Notes {
		s.log.Warn(n)
	}
	removed := loader.Finish()
	for _, p := range removed {
		s.log.Warn("ephemeral of a session that does not exist is removed", "path", p)
	}
	for _, h := range s.tree.Happenings() {
		s.log.Warn(h.String())
	}
	if res.LastZxid < 0 {
		return errEmptyNotAllowed
	}
	// An empty directory, logs alone with snapshot.trust.empty, or a tree that
	// is no longer what snapshot and log make of it.
	if res.Snapshot < 0 || len(removed) > 0 {
		if _, err := s.store.WriteSnapshot(res.LastZxid, s.tree.Snapshot()); err != nil {
			return fmt.Errorf("snapshot at the start: %w", err)
		}
	}
	zxid, digest := s.tree.Digest()
	took := time.Since(start)
	s.stats.loaded(took, res.Txns)
	s.log.Info(fmt.Sprintf("%d txns loaded in %d ms", res.Txns, took.Milliseconds()))
	s.log.Info(fmt.Sprintf("Snapshot loaded in %d ms, highest zxid is %v, digest is %d", took.Milliseconds(), zxid, digest),
		"file", res.SnapshotPath)
	s.replayed = res.Txns
	return nil
}
