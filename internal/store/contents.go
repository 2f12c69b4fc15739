package store

import (
	"fmt"

	"bellwether/internal/record"
	"bellwether/wire"
)

// contents is what a snapshot says about itself, beside its name. The name is
// the last transaction that it certainly contains; it may know of later ones
// (it is written while the tree changes), and never of fewer.
type contents struct {
	// digest is the digest block, nil if there is none. Its zxid is the last
	// transaction that was applied when the snapshot was finished; 0 if the
	// writer did not know, as a server of ZooKeeper that was itself given a
	// snapshot by its leader, or that has applied nothing since its start.
	digest *SnapshotDigest
	// finished is the same, from the block that 3.9 and Bellwether write (of
	// Bellwether: the name); -1 if there is none.
	finished wire.Zxid
	newest   wire.Zxid // the last transaction of which a znode shows an effect
}

// configPath is the znode that servers write without a transaction: its mzxid
// is a version of the configuration.
const configPath = "/zookeeper/config"

// node takes account of a znode.
func (c *contents) node(path string, s *record.StatPersisted) {
	if path != configPath {
		c.newest = max(c.newest, s.Czxid, s.Mzxid, s.Pzxid)
	}
}

// digested is the zxid of the digest block; 0 if it is not known.
func (c *contents) digested() wire.Zxid {
	if c.digest == nil || c.digest.Zxid < 0 {
		return 0
	}
	return c.digest.Zxid
}

// last is the last transaction of which the snapshot says that it was applied.
// The zxid 0 of an epoch is none.
func (c *contents) last() wire.Zxid {
	if c.finished.Counter() == 0 {
		return c.digested()
	}
	return max(c.finished, c.digested())
}

// reaches is the last transaction of which the snapshot shows anything.
func (c *contents) reaches() wire.Zxid { return max(c.last(), c.newest) }

// proves reports whether the snapshot says itself that it contains what a name
// promises.
func (c *contents) proves(name wire.Zxid) bool { return max(c.finished, c.digested()) >= name }

// misnamed says what in the snapshot itself contradicts its name, "" if
// nothing does. A leader of ZooKeeper that begins an epoch counts as having
// applied its zxid 0, which is no transaction: then the digest's is earlier.
func (c *contents) misnamed(name wire.Zxid) string {
	digested := c.digested()
	switch {
	case c.finished >= 0 && c.finished < name:
		return fmt.Sprintf("it was finished at %v, before %v", c.finished, name)
	case digested > 0 && digested < name && name.Counter() != 0:
		return fmt.Sprintf("its digest is that of %v, before %v", digested, name)
	}
	return ""
}

// changesZnodes reports whether a transaction, once applied, shows in the
// czxid, mzxid or pzxid of a znode. Every later change keeps that visible: the
// deletion of a znode shows in its parent.
func changesZnodes(t *record.Txn) bool {
	switch body := t.Body.(type) {
	case *record.CloseSessionTxn:
		return len(body.Paths) > 0
	case *record.MultiTxn:
		if body.Failed() {
			return false
		}
		for _, op := range body.Ops {
			if changes(op.Type, op.Body) {
				return true
			}
		}
		return false
	default:
		return changes(t.Type, t.Body)
	}
}

func changes(op wire.OpCode, body record.TxnBody) bool {
	if op == wire.OpReconfig {
		return false // it writes configPath
	}
	switch body := body.(type) {
	case *record.CreateTxn, *record.CreateContainerTxn, *record.CreateTTLTxn, *record.DeleteTxn:
		return true
	case *record.SetDataTxn:
		return body.Path != configPath
	}
	return false
}
