package driver

import (
	"fmt"
	"testing"

	"bellwether/internal/record"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// TestSnapshotMembership: the configuration znode of a snapshot holds a membership only if a
// reconfiguration wrote it. What a client has written there says nothing.
func TestSnapshotMembership(t *testing.T) {
	text := func(version int) string {
		return fmt.Sprintf("server.1=127.0.0.1:1:2:participant\nversion=%x", version)
	}
	for _, c := range []struct {
		op   wire.OpCode
		zxid wire.Zxid
		text string
		want string
	}{
		{wire.OpReconfig, 0x100000007, text(0x100000007), "[100000007]"},
		{wire.OpSetData, 0x100000007, text(0x7fffffffffffffff), "[]"},
		{wire.OpSetData, 0x100000007, "x", "[]"},
		{wire.OpReconfig, 0x100000007, "", "[]"},
	} {
		tr := tree.New(tree.Options{Reconfig: true})
		tr.Replay(&record.Txn{
			TxnHeader: record.TxnHeader{Zxid: c.zxid, Type: c.op},
			Body:      &record.SetDataTxn{Path: "/zookeeper/config", Data: []byte(c.text), Version: -1},
		})
		var l Logged
		l.Snapshot(tr)
		got := []string{}
		for _, m := range l.All {
			got = append(got, fmt.Sprintf("%x", m.Version()))
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%v %q: %v, want %v", c.op, c.text, got, c.want)
		}
	}
}
