package main

import (
	"fmt"
	"slices"

	"bellwether/internal/shell"
	"bellwether/internal/store"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// comparison is what the digests of a data directory say about the tree that it gives.
type comparison struct {
	equal int // after how many transactions the digest was the one in the log

	// The transactions after which it was another one. The leader's tree or this one was wrong then, and the files do not show which.
	// If the digests were equal again later, both trees became the same, and nothing is recorded here.
	differ      int
	first, last wire.Zxid
}

// doubt says what is wrong; empty: nothing.
func (c *comparison) doubt() string {
	after := c.first.String()
	switch c.differ {
	case 0:
		return ""
	case 1:
	default:
		after = fmt.Sprintf("%s between %v and %v", shell.Count(c.differ, "transaction"), c.first, c.last)
	}
	return fmt.Sprintf("after %s the tree has another digest than the leader's tree had; see \"Before you start Bellwether\" in docs/migrate.md", after)
}

// notCompared is the note about a tree of which nothing could be compared.
const notCompared = "no digest could be compared, so a log that lacks transactions at the end of an epoch would not be noticed: " +
	"the newest snapshot came from a leader, or the transactions after it have no digests"

// examineTree returns why the tree that a data directory gives may be the wrong one; empty: nothing says that it is. If the tree could
// not be compared, it adds a note to the report.
func examineTree(files store.FS, r *store.Report) (doubt string) {
	c, err := compareDigests(files, r)
	switch {
	case err != nil:
		r.Notes = append(r.Notes, "the tree was not compared with the digests in the logs: "+err.Error())
		return ""
	case c == nil:
		return ""
	case c.equal == 0 && c.differ == 0:
		r.Notes = append(r.Notes, notCompared)
	}
	return c.doubt()
}

// compareDigests applies the transactions of an undamaged data directory to its newest snapshot, and compares the digest of the tree
// after each with the one that the log contains. It finds what the files themselves do not show: a log that lacks the last
// transactions of an epoch. It returns nil if there is no tree to compare.
func compareDigests(files store.FS, r *store.Report) (*comparison, error) {
	sound := slices.DeleteFunc(slices.Clone(r.Snapshots), func(s store.CheckedSnapshot) bool { return !s.Sound })
	if len(r.Damage) > 0 || len(sound) == 0 {
		return nil, nil
	}
	t := tree.New(tree.Options{})
	loader := t.Loader()
	defer loader.Close()
	snapshot := sound[len(sound)-1]
	if err := store.DumpSnapshot(files, snapshot.Path, loader); err != nil {
		return nil, err
	}
	c, known, last := &comparison{}, int64(0), snapshot.Zxid
	compare := func(hasDigest bool) {
		n, _ := t.DigestMismatches()
		switch _, _, exact := t.ExactDigest(); {
		case n > known:
			if known, c.last = n, last; c.differ == 0 {
				c.first = last
			}
			c.differ++
		case hasDigest && exact:
			c.equal++
			c.differ = 0
		}
	}
	compare(false)
	for _, l := range r.Logs {
		if l.Last <= last {
			continue
		}
		for e, err := range store.DumpLog(files, l.Path) {
			switch {
			case err != nil:
				return nil, err
			case e.Txn.Zxid <= last: // the log repeats it (ZOOKEEPER-4541), or the snapshot contains it
				continue
			}
			last = e.Txn.Zxid
			if err := loader.Txn(e.Txn); err != nil {
				return nil, err
			}
			compare(e.Txn.Digest != nil)
		}
	}
	return c, nil
}
