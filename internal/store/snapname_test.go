package store

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"bellwether/internal/record"
	"bellwether/wire"
)

// claimed is a snapshot with its name, the contents of its last blocks, and the last
// change that its znodes show.
type claimed struct {
	name     wire.Zxid
	digest   wire.Zxid // 0: not known
	finished wire.Zxid // -1: the snapshot has no last block, like snapshots of ZooKeeper before 3.9
	newest   wire.Zxid
}

func (c claimed) write(t *testing.T, m *Mem) {
	t.Helper()
	src := &copyTree{paths: []string{"", "/a"}, nodes: make([]record.DataNode, 2),
		digest: &SnapshotDigest{Zxid: c.digest, Version: record.DigestVersion}}
	src.nodes[0].ACL, src.nodes[1].ACL = -1, -1
	src.nodes[1].Stat.Mzxid = c.newest
	var b bytes.Buffer
	_, err := EncodeSnapshot(&b, c.finished, src, Options{OmitLastZxid: c.finished < 0})
	must(t, err)
	put(t, m, snapshotName(c.name, Plain), b.Bytes())
}

// logged is a log with the transactions from first to last. change says whether they
// change a znode.
type logged struct {
	first, last wire.Zxid
	change      bool
}

func (l logged) write(t *testing.T, m *Mem) {
	t.Helper()
	b, c := appendLogHeader(nil), wire.Coder{}
	for z := l.first; z <= l.last; z++ {
		x := &record.Txn{TxnHeader: record.TxnHeader{Session: 7, Zxid: z, Type: wire.OpCreateSession}, Body: &record.CreateSessionTxn{TimeoutMS: 1}}
		if l.change {
			x = &record.Txn{TxnHeader: record.TxnHeader{Session: 7, Zxid: z, Type: wire.OpSetData}, Body: &record.SetDataTxn{Path: "/a", Version: int32(z)}}
		}
		var err error
		b, err = appendRecord(&c, b, x)
		must(t, err)
	}
	put(t, m, logName(l.first), b)
}

// at returns the zxid of transaction n of an epoch.
func at(epoch, n int64) wire.Zxid { return wire.Zxid(epoch<<32 | n) }

// TestSnapshotIsBelievedByItsContent: a snapshot is used if a ZooKeeper or Bellwether server can have
// written it under its name. It is refused if its content or the logs contradict its name.
func TestSnapshotIsBelievedByItsContent(t *testing.T) {
	for _, c := range []struct {
		name      string
		snapshots []claimed
		logs      []logged
		member    int // the epoch that this server has accepted; 0: it is not a member of an ensemble
		last      wire.Zxid
		note      string // the note for the operator; "": there is none
		refused   string // the reason why the named file is refused
	}{
		{name: "fuzzy", snapshots: []claimed{{5, 8, -1, 8}}, logs: []logged{{1, 9, true}}, last: 9},
		{name: "fuzzy, of 3.9", snapshots: []claimed{{5, 8, 9, 8}}, logs: []logged{{1, 9, true}}, last: 9},
		{name: "empty tree", snapshots: []claimed{{0, 0, -1, 0}}, logs: []logged{{1, 9, true}}, last: 9},
		{name: "empty tree, no log yet", snapshots: []claimed{{0, 0, 0, 0}}, last: 0},
		{name: "ours", snapshots: []claimed{{5, 5, 5, 5}}, logs: []logged{{1, 9, true}}, last: 9},
		{name: "of a server that applied nothing since its start", snapshots: []claimed{{9, 0, -1, 7}},
			logs: []logged{{1, 7, true}, {8, 9, false}}, last: 9},
		{name: "of a leader that begins an epoch", snapshots: []claimed{{at(2, 0), at(1, 5), -1, at(1, 5)}},
			logs: []logged{{at(1, 1), at(1, 5), true}, {at(2, 1), at(2, 3), true}}, member: 2, last: at(2, 3)},
		{name: "of a leader that began an epoch without an end of the last", snapshots: []claimed{{at(2, 0), 0, -1, at(1, 3)}},
			logs: []logged{{at(1, 1), at(1, 3), true}, {at(1, 4), at(1, 5), false}}, member: 2, last: at(2, 0)},
		{name: "of a leader, while an epoch began", snapshots: []claimed{{at(1, 5), at(1, 5), at(2, 0), at(1, 5)}},
			logs: []logged{{at(1, 1), at(1, 5), true}}, member: 2, last: at(1, 5)},
		{name: "sent by a leader, far behind the log", snapshots: []claimed{{at(2, 900), 0, -1, at(2, 880)}},
			logs: []logged{{at(1, 1), at(1, 5), true}}, member: 2, last: at(2, 900)},
		{name: "sent by a leader, in the epoch of the log", snapshots: []claimed{{at(1, 900), 0, at(1, 900), at(1, 880)}},
			logs: []logged{{at(1, 1), at(1, 5), true}}, member: 1, last: at(1, 900)},
		{name: "sent by a leader that lacks the end of the log", snapshots: []claimed{{at(2, 0), 0, -1, at(1, 5)}},
			logs: []logged{{at(1, 1), at(1, 7), true}}, member: 2, last: at(2, 0), note: "correct if a leader of epoch 2 sent this snapshot"},
		{name: "sent by a leader, with effects behind its name that were not logged before a crash", member: 2,
			snapshots: []claimed{{at(2, 4), 0, -1, at(2, 6)}}, logs: []logged{{at(1, 1), at(1, 3), true}}, last: at(2, 4)},
		{name: "alone on a restored server", snapshots: []claimed{{9, 9, 9, 9}}, last: 9, note: "restored from a snapshot alone"},
		{name: "the newest logs are gone", snapshots: []claimed{{0, 0, 0, 0}, {9, 9, 9, 9}}, logs: []logged{{1, 5, true}}, last: 9,
			note: "the newest logs are missing"},

		{name: "named too late, by its digest", snapshots: []claimed{{0, 0, -1, 0}, {0xfffff, 5, -1, 5}},
			logs: []logged{{1, 5, true}, {6, 9, true}}, last: 9, note: "its digest is that of 0x5, before 0xfffff"},
		{name: "named a little too late", snapshots: []claimed{{0, 0, -1, 0}, {7, 5, -1, 5}},
			logs: []logged{{1, 5, true}, {6, 9, true}}, last: 9, note: "its digest is that of 0x5, before 0x7"},
		{name: "named too late, by its last block", snapshots: []claimed{{0, 0, -1, 0}, {0xfffff, 0, 5, 3}},
			logs: []logged{{1, 5, true}, {6, 9, true}}, last: 9, note: "it was finished at 0x5"},
		{name: "named too late, by the log", snapshots: []claimed{{0, 0, -1, 0}, {0xfffff, 0, -1, 5}},
			logs: []logged{{1, 5, true}, {6, 9, true}}, last: 9, note: "it does not contain 0x6, which is in log.6"},
		{name: "named after the beginning of an epoch, by the log", snapshots: []claimed{{0, 0, -1, 0}, {at(1, 0), 5, -1, 5}},
			logs: []logged{{1, 5, true}, {6, 9, false}}, last: 9, note: "it does not contain 0x6, which is in log.6"},
		{name: "named after an epoch that this member has not seen", snapshots: []claimed{{at(1, 0), 0, -1, 0}, {at(3, 0), 0, -1, at(1, 5)}},
			logs: []logged{{at(1, 1), at(1, 9), true}}, member: 2, last: at(1, 9), note: "does not contain 0x100000006, which is in log.100000001"},
		{name: "named too late, and there is no older one", snapshots: []claimed{{0xfffff, 5, -1, 5}},
			logs: []logged{{6, 9, true}}, refused: "snapshot.fffff"},
		{name: "named too late, and the logs do not reach back to the older one", snapshots: []claimed{{1, 1, 1, 1}, {0xfffff, 5, -1, 5}},
			logs: []logged{{6, 9, true}}, refused: "snapshot.fffff"},
		{name: "named too late, and the logs do not reach what it knows", snapshots: []claimed{{1, 1, 1, 1}, {0xfffff, 5, -1, 5}},
			logs: []logged{{1, 3, true}}, refused: "snapshot.fffff"},
		{name: "named too late, and it says nothing", snapshots: []claimed{{0xfffff, 0, -1, 5}},
			logs: []logged{{1, 5, true}, {6, 9, false}}, last: 0xfffff, note: "sessions or ACLs are lost"},

		{name: "named too early", snapshots: []claimed{{2, 5, 5, 5}}, logs: []logged{{1, 9, true}}, last: 9},
		{name: "named too early, and the logs do not reach back", snapshots: []claimed{{2, 5, 5, 5}},
			logs: []logged{{6, 9, true}}, refused: "log.6"},
		{name: "named too early, and there are no logs", snapshots: []claimed{{0, 5, 5, 5}}, refused: "snapshot.0"},
		{name: "named too early, and it has no digest", snapshots: []claimed{{0, 0, -1, 5}}, refused: "snapshot.0"},
		{name: "fuzzy, and the logs skip to an epoch behind what it knows", snapshots: []claimed{{5, 8, -1, 8}},
			logs: []logged{{1, 5, true}, {at(1, 1), at(1, 2), true}}, refused: "log.100000001"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := NewMem(1)
			must(t, m.MkdirAll("/data/version-2"))
			for _, s := range c.snapshots {
				s.write(t, m)
			}
			for _, l := range c.logs {
				l.write(t, m)
			}
			if c.member > 0 {
				put(t, m, acceptedEpochName, fmt.Append(nil, c.member))
				put(t, m, currentEpochName, fmt.Append(nil, c.member))
			}
			believed(t, m, c.last, c.note, c.refused)
		})
	}
}

// believed checks that a start and Check report the expected history, note or refusal.
func believed(t *testing.T, m *Mem, last wire.Zxid, note, refused string) {
	t.Helper()
	report, err := Check(m, dataOptions)
	must(t, err)
	res, err := loadInto(m, dataOptions, Discard{})
	told := fmt.Sprint(report.Notes, report.Damage)
	if refused != "" {
		var damage *DamageError
		if !errors.As(err, &damage) || damage.File != "/data/version-2/"+refused || !strings.Contains(told, refused) || report.LastZxid >= 0 {
			t.Errorf("a start says %v, data check %v %s", err, report.LastZxid, told)
		}
		return
	}
	if err != nil || res.LastZxid != last || report.LastZxid != last {
		t.Errorf("the history ends at %v (%v), for data check at %v %s; want %v\n%q", res.LastZxid, err, report.LastZxid, told, last, res.Notes)
	}
	if got := fmt.Sprint(res.Notes); (note == "") != (len(res.Notes) == 0) || !strings.Contains(got, note) || !strings.Contains(told, note) {
		t.Errorf("a start tells %q, data check %s; want %q", got, told, note)
	}
}

// TestSnapshotOfALeaderHasTheDigestOfNoTransaction: ZooKeeper compares no digest until it has replayed the
// transaction that the digest block names. Reading gives zxid 0.
func TestSnapshotOfALeaderHasTheDigestOfNoTransaction(t *testing.T) {
	m := NewMem(1)
	s := open(t, m, dataOptions)
	file, err := s.InstallSnapshot(5<<32+3, newWorld())
	must(t, err)
	must(t, s.Close())
	if want := []byte("\x00\x00\x00\x05\xff\xff\xff\xff\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00"); !bytes.Contains(get(t, m, filepath.Base(file.Path)), want) {
		t.Error("its digest block is not that of the last zxid of the epoch")
	}
	got := loaded(t, m)
	if want := fmt.Sprintf("done 0x500000003 %v", &SnapshotDigest{Version: record.DigestVersion}); got.snapshot[len(got.snapshot)-1] != want {
		t.Error(got.snapshot[len(got.snapshot)-1])
	}
}
