package store

import (
	"fmt"

	"bellwether/internal/record"
	"bellwether/wire"
)

// contents holds what a snapshot says about itself, apart from its name. The name is the
// last transaction that the snapshot certainly contains. It may contain effects of later
// ones, because it is written while the tree changes.
type contents struct {
	// digest is the digest block, nil if there is none. Its zxid is the last transaction
	// that was applied when the snapshot was finished. It is 0 if the writer did not know
	// that: a server of ZooKeeper that got a snapshot from its leader, or that has
	// applied nothing since its start.
	digest *SnapshotDigest
	// finished is the same zxid from the last block, which ZooKeeper 3.9 and Bellwether
	// write (Bellwether writes the zxid of the name); -1 if there is none.
	finished wire.Zxid
	newest   wire.Zxid // the last transaction of which a znode shows an effect
}

// configPath is the znode that servers write without a transaction. Its mzxid is the
// version of the configuration.
const configPath = "/zookeeper/config"

// node takes a znode into account.
func (c *contents) node(path string, s *record.StatPersisted) {
	if path != configPath {
		c.newest = max(c.newest, s.Czxid, s.Mzxid, s.Pzxid)
	}
}

// digested returns the zxid of the digest block; 0 if the snapshot does not give it.
func (c *contents) digested() wire.Zxid {
	if c.digest == nil || c.digest.Zxid < 0 {
		return 0
	}
	return c.digest.Zxid
}

// last returns the last transaction that was applied, according to the snapshot's last
// blocks. A zxid with counter 0 is not a transaction.
func (c *contents) last() wire.Zxid {
	if c.finished.Counter() == 0 {
		return c.digested()
	}
	return max(c.finished, c.digested())
}

// reaches returns the last transaction of which the snapshot shows an effect.
func (c *contents) reaches() wire.Zxid { return max(c.last(), c.newest) }

// proves reports whether the snapshot itself says that it contains everything up to the
// zxid of its name.
func (c *contents) proves(name wire.Zxid) bool { return max(c.finished, c.digested()) >= name }

// misnamed describes what in the snapshot contradicts its name; "" if nothing does. When
// a ZooKeeper leader begins an epoch, it names its snapshot after the epoch's zxid with
// counter 0, which is not a transaction; then the zxid of the digest is lower than the name.
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

// changesZnodes reports whether a transaction, once applied, shows in the czxid, mzxid or
// pzxid of a znode. Later changes do not hide that: a deleted znode shows in its parent.
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
		return false // this writes configPath
	}
	switch body := body.(type) {
	case *record.CreateTxn, *record.CreateContainerTxn, *record.CreateTTLTxn, *record.DeleteTxn:
		return true
	case *record.SetDataTxn:
		return body.Path != configPath
	}
	return false
}
