package server

import (
	"testing"

	"bellwether/internal/record"
	"bellwether/internal/store"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// orphaned is a snapshot of a tree that lacks the tree's sessions.
type orphaned struct{ *tree.Snapshot }

func (orphaned) Sessions(func(wire.SessionID, int32) error) error { return nil }

// TestOrphanedEphemeralIsRemovedForGood: an ephemeral of a session that the data
// directory does not contain is removed at the start. What is created in its place also
// survives the next start: the history must not be replayed over the old tree.
func TestOrphanedEphemeralIsRemovedForGood(t *testing.T) {
	disk := store.NewMem(1)
	st, err := store.Open(disk, storeOptions(testConfig()))
	if err != nil {
		t.Fatal(err)
	}
	old := tree.New(tree.Options{})
	if _, err := st.Load(old.Loader()); err != nil {
		t.Fatal(err)
	}
	old.Apply(&record.Txn{TxnHeader: record.TxnHeader{Session: 7, Type: wire.OpCreate},
		Body: &record.CreateTxn{Path: "/leader", Data: []byte("gone"), ACL: wire.OpenACL(), Ephemeral: true, ParentCversion: 1}})
	if _, err := st.WriteSnapshot(0, orphaned{old.Snapshot()}); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	first := start(t, Options{FS: disk})
	c := first.connect()
	leader := create("/leader", "new")
	leader.Flags = wire.FlagEphemeral
	c.must(wire.OpCreate, leader, nil)
	if err := first.end(); err != nil {
		t.Fatal(err)
	}
	again := start(t, Options{FS: disk}).dial()
	again.handshake(wire.ConnectRequest{TimeoutMS: lastingMS, Session: c.session.Session, Password: c.session.Password})
	if got := again.data("/leader"); got != "new" {
		t.Errorf("data is %q", got)
	}
}
