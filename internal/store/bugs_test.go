package store

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bellwether/internal/record"
	"bellwether/wire"
)

// Each test in this file guards against a known bug of another system, and is named after
// the report of that bug.

// TestLogWithoutRecords_ZOOKEEPER_2332: a crash while a log is created can leave a log
// without records. The next start continues, sets the file aside, and its name can be
// used again.
func TestLogWithoutRecords_ZOOKEEPER_2332(t *testing.T) {
	header := appendLogHeader(nil)
	recorded, err := appendRecord(new(wire.Coder), nil, txn(4, 'x'))
	must(t, err)
	for name, b := range map[string][]byte{
		"empty":                      {},
		"one byte":                   header[:1],
		"a part of the header":       header[:15],
		"zeros":                      make([]byte, 16),
		"zeros, allocated ahead":     make([]byte, 70000),
		"a header":                   header,
		"a header, allocated ahead":  append(slices.Clone(header), make([]byte, 70000)...),
		"a part of a record":         append(slices.Clone(header), recorded[:len(recorded)-1]...),
		"first sector missing":       append(make([]byte, sectorLen), recorded...),
		"a part of a record's start": append(slices.Clone(header), recorded[:5]...),
	} {
		m, d := filled(t, 3)
		put(t, m, "log.4", b)
		rep, err := Check(m, dataOptions)
		must(t, err)
		if len(rep.Damage) > 0 || len(rep.Notes) == 0 {
			t.Errorf("%s: check says %v, %v", name, rep.Damage, rep.Notes)
		}
		must(t, d.start())
		if d.s.LastZxid() != 3 || !slices.Contains(names(t, m), "aside.log.4") {
			t.Errorf("%s: last %v, files %v", name, d.s.LastZxid(), names(t, m))
		}
		must(t, d.commit(4))
		m.Crash(LoseAll)
		must(t, d.verify(t, m).s.Close())
	}
}

// TestNoSnapshotIsNotEmpty_ZOOKEEPER_2325_3056: if there are transactions, a server never
// starts with an empty tree, even if its snapshots are empty, damaged or missing.
func TestNoSnapshotIsNotEmpty_ZOOKEEPER_2325_3056(t *testing.T) {
	sample := func() *Mem { return diskOf(t, samples) }
	all := []string{"snapshot.0", "snapshot.3c", "snapshot.91", "snapshot.95"}
	m := sample()
	for _, name := range all {
		drop(t, m, name)
	}
	refused(t, m, "log.96", 0, 1)
	for _, b := range [][]byte{nil, make([]byte, 400), []byte("ZKSN")} {
		m = sample()
		for _, name := range all {
			put(t, m, name, b)
		}
		refused(t, m, "snapshot.95", 0, 10)
	}
	drop(t, m, "log.1")
	drop(t, m, "log.3e")
	drop(t, m, "log.93")
	drop(t, m, "log.96")
	refused(t, m, "snapshot.95", 0, 10)
}

// TestTrustEmptyReplaysLogs_ZOOKEEPER_3644: with snapshot.trust.empty the logs are
// replayed, not ignored. They must start with the first transaction, and the server logs
// nothing new before it has written a snapshot.
func TestTrustEmptyReplaysLogs_ZOOKEEPER_3644(t *testing.T) {
	o := dataOptions
	o.TrustEmpty = true
	m := diskOf(t, samples)
	for _, name := range []string{"snapshot.0", "snapshot.3c", "snapshot.91", "snapshot.95"} {
		drop(t, m, name)
	}
	s := open(t, m, o)
	r := &recorded{}
	res, err := s.Load(r)
	must(t, err)
	if res.Empty || res.Snapshot != -1 || res.Txns != 0xa1 || res.LastZxid != 0xa1 || len(r.txns) != 0xa1 {
		t.Errorf("%+v", res)
	}
	if err := s.Append([]*record.Txn{txn(0xa2, 'a')}); err == nil {
		t.Error("appended without a snapshot")
	}
	_, err = s.WriteSnapshot(0xa1, newWorld())
	must(t, err)
	must(t, s.Append([]*record.Txn{txn(0xa2, 'a')}))
	must(t, s.Close())
	drop(t, m, "snapshot.a1")
	drop(t, m, "log.1")
	var d *DamageError
	if _, err := loadInto(m, o, &recorded{}); !errors.As(err, &d) || filepath.Base(d.File) != "log.3e" {
		t.Errorf("beginning missing: %v", err)
	}
}

// TestInstalledSnapshotSurvives_ZOOKEEPER_3642: a snapshot from a leader is durable
// before the store reports it as installed. After a restart nothing before it is missing,
// and the log continues after it.
func TestInstalledSnapshotSurvives_ZOOKEEPER_3642(t *testing.T) {
	d := newDriver(NewMem(1), dataOptions)
	must(t, d.start())
	must(t, d.commit(1, 2, 3))
	must(t, d.install(2<<32+7))
	for v := range variants {
		c := d.m.Clone(uint64(v))
		c.Crash(v)
		must(t, d.verify(t, c).s.Close())
	}
	must(t, d.commit(2<<32+8))
	d.m.Crash(LoseAll)
	must(t, d.verify(t, d.m).s.Close())
	w := newWorld()
	must(t, w.Txn(txn(9<<32, 'z')))
	if err := d.start(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.s.InstallSnapshot(3<<32, w); err == nil {
		t.Error("installed a snapshot that knows of more than its name says")
	}
}

// TestBrokenInstalledSnapshotIsRefused: if an installed snapshot is damaged, the readable
// history ends before it. A start with that history would go back in time, so it is
// refused.
func TestBrokenInstalledSnapshotIsRefused(t *testing.T) {
	d := newDriver(NewMem(1), dataOptions)
	must(t, d.start())
	must(t, d.commit(1, 2, 3))
	must(t, d.install(2<<32+7))
	must(t, d.s.Close())
	name := snapshotName(2<<32+7, Plain)
	b := get(t, d.m, name)
	b[300] ^= 8
	put(t, d.m, name, b)
	refused(t, d.m, name, 1, int64(len(b)))
}

// TestTruncateTakesSnapshots_ZOOKEEPER_4837: a truncation also removes the snapshots that
// contain a truncated transaction, according to their name or their digest block. The
// removed transactions never come back, even after other transactions have got the same
// zxids.
func TestTruncateTakesSnapshots_ZOOKEEPER_4837(t *testing.T) {
	d := newDriver(NewMem(1), dataOptions)
	must(t, d.start())
	must(t, d.commit(1, 2, 3, 4))
	must(t, d.snapshot(2)) // this snapshot contains transaction 4
	must(t, d.commit(5, 6))
	must(t, d.snapshot(6))
	must(t, d.truncate(3))
	if got := names(t, d.m); !slices.Contains(got, "aside.snapshot.2") || !slices.Contains(got, "aside.snapshot.6") {
		t.Errorf("files %v", got)
	}
	must(t, d.commit(4, 5, 6, 7))
	d.m.Crash(LoseAll)
	must(t, d.verify(t, d.m).s.Close())
}

// TestTruncateInterrupted_ZOOKEEPER_5094: after a crash at any point of a truncation, the
// next start either completes the truncation or finds the history unchanged.
func TestTruncateInterrupted_ZOOKEEPER_5094(t *testing.T) {
	for n := 1; ; n++ {
		d := newDriver(NewMem(uint64(n)), dataOptions)
		must(t, d.start())
		must(t, d.commit(1, 2, 3))
		must(t, d.roll())
		must(t, d.commit(4, 5))
		must(t, d.snapshot(5))
		must(t, d.roll())
		must(t, d.commit(6, 7))
		d.m.CrashAt(n)
		err := d.truncate(2)
		if err == nil {
			return
		}
		if !errors.Is(err, ErrCrashed) {
			t.Fatal(err)
		}
		for v := range variants {
			m := d.m.Clone(uint64(v))
			m.Crash(v)
			next := d.verify(t, m)
			if last := next.last; last != 2 && last != 7 {
				t.Fatalf("change %d: history ends at %v", n, last)
			}
			must(t, next.s.Close())
		}
	}
}

// TestSyncedFollowsTruncation_Keeper_102629: a truncation lowers the zxid up to which the
// store reports the log as durable. (In ClickHouse Keeper 102629 that index stayed too
// high, and entries were acknowledged that were not on the disk.)
func TestSyncedFollowsTruncation_Keeper_102629(t *testing.T) {
	d := newDriver(NewMem(1), dataOptions)
	must(t, d.start())
	must(t, d.commit(1, 2, 3, 4))
	must(t, d.truncate(2))
	if d.s.Synced() != 2 || d.s.LastZxid() != 2 {
		t.Errorf("synced %v, last %v", d.s.Synced(), d.s.LastZxid())
	}
	must(t, d.add(3))
	if d.s.Synced() != 2 || d.s.LastZxid() != 3 {
		t.Errorf("synced %v, last %v", d.s.Synced(), d.s.LastZxid())
	}
}

// TestReadLogRefusesGap_ZOOKEEPER_2418: a learner is never given a history from which a
// part is missing.
func TestReadLogRefusesGap_ZOOKEEPER_2418(t *testing.T) {
	m := diskOf(t, samples)
	s := open(t, m, dataOptions)
	_, err := s.Load(&recorded{})
	must(t, err)
	must(t, m.Remove("/data/version-2/log.93"))
	readFails(t, s, 0x50)
	must(t, s.Close())

	d := newDriver(NewMem(1), dataOptions)
	must(t, d.start())
	must(t, d.commit(1, 2, 3))
	must(t, d.install(2<<32+7))
	must(t, d.commit(2<<32+8))
	readFails(t, d.s, 1)
	readFails(t, d.s, 3)
	n := 0
	for _, err := range d.s.ReadLog(2<<32 + 7) {
		must(t, err)
		n++
	}
	if n != 1 {
		t.Errorf("%d transactions behind the installed snapshot", n)
	}
}

// TestRepeatedTransactions_ZOOKEEPER_4541: a log that contains each transaction twice, as
// some ZooKeeper servers wrote it while they stopped, is loaded with each transaction
// once.
func TestRepeatedTransactions_ZOOKEEPER_4541(t *testing.T) {
	m, d := filled(t, 6)
	raw := get(t, m, "log.1")
	put(t, m, "log.1", append(raw, raw[logHeaderLen:]...))
	w, res, err := load(m, dataOptions)
	if err != nil || w.diff(d.states[6]) != "" || len(res.Notes) != 1 || res.Txns != 6 {
		t.Errorf("%v %+v", err, res)
	}
}

// TestSnapshotNeverAheadOfLog_etcd_13766: neither the name nor the content of a snapshot
// is ahead of the durable log. (In etcd 13766, after a crash under load, the revision did
// not match the entries that were applied.)
func TestSnapshotNeverAheadOfLog_etcd_13766(t *testing.T) {
	d := newDriver(NewMem(1), dataOptions)
	must(t, d.start())
	must(t, d.commit(1, 2))
	must(t, d.add(3))
	if err := d.snapshot(2); err == nil {
		t.Error("content ahead of the log was written")
	}
	if _, err := d.s.WriteSnapshot(3, d.states[2]); err == nil {
		t.Error("a name ahead of the log was written")
	}
	must(t, d.sync())
	must(t, d.snapshot(3))
}

// TestFuzzySnapshotNeedsItsLog: a fuzzy snapshot may have effects of transactions that
// the log has lost. Such a snapshot is not used; the store uses an older one that agrees
// with the log.
func TestFuzzySnapshotNeedsItsLog(t *testing.T) {
	m := diskOf(t, samples)
	for _, name := range []string{"snapshot.95", "log.93", "log.96"} {
		drop(t, m, name)
	}
	b := get(t, m, "log.3e")
	put(t, m, "log.3e", b[:len(b)-1]) // the log ends at 0x91, but snapshot.91 has effects of 0x92
	s := open(t, m, dataOptions)
	res, err := s.Load(&recorded{})
	must(t, err)
	if res.Snapshot != 0x3c || res.LastZxid != 0x91 {
		t.Errorf("%+v", res)
	}
	must(t, s.Close())
	drop(t, m, "snapshot.0")
	drop(t, m, "snapshot.3c")
	refused(t, m, "snapshot.91", 0, 1)
}

// TestSingleServerLosesNothing_etcd_14370: a standalone server with group commit loses
// nothing that it has acknowledged, whatever part of the data without fsync the crash
// keeps (etcd 14370).
func TestSingleServerLosesNothing_etcd_14370(t *testing.T) {
	for n := 1; n < 30; n++ {
		d := newDriver(NewMem(uint64(n)), dataOptions)
		must(t, d.start())
		d.m.CrashAt(n)
		var err error
		for z := wire.Zxid(1); err == nil; z += 3 {
			err = d.commit(z, z+1, z+2)
		}
		if !errors.Is(err, ErrCrashed) {
			t.Fatal(err)
		}
		for v := range variants {
			m := d.m.Clone(uint64(v))
			m.Crash(v)
			must(t, d.verify(t, m).s.Close())
		}
	}
}

// TestCrashInSnapshotPurgeRoll_etcd_14685_17780: the machine crashes at each change that
// a snapshot, a purge, a new log or a compression makes, with each form of snapshot (etcd
// 14685). The last zxid never goes down (etcd 17780).
func TestCrashInSnapshotPurgeRoll_etcd_14685_17780(t *testing.T) {
	for _, form := range []Compression{Plain, Gzip, Snappy} {
		o := dataOptions
		o.Compression = form
		for n := 1; crashInPurge(t, o, n); n++ {
			if n > 1000 {
				t.Fatal("it never ends")
			}
		}
	}
}

func crashInPurge(t *testing.T, o Options, n int) (crashed bool) {
	d := newDriver(NewMem(uint64(n)), o)
	must(t, d.start())
	must(t, d.commit(1, 2, 3, 4, 5))
	d.m.CrashAt(n)
	for range 4 {
		err := d.roll()
		if err == nil {
			err = d.snapshot(d.last)
		}
		if err == nil {
			_, err = d.s.Purge(3)
		}
		if err == nil {
			err = d.commit(d.last+1, d.last+2)
		}
		if errors.Is(err, ErrCrashed) {
			for v := range variants {
				m := d.m.Clone(uint64(v))
				m.Crash(v)
				must(t, d.verify(t, m).s.Close())
			}
			return true
		}
		must(t, err)
	}
	return false
}

// TestUnfinishedSnapshotOfUpstream: ZooKeeper gives a snapshot its final name before it
// is complete, and would later use the incomplete file. The store sets such a file aside,
// so that neither server uses it.
func TestUnfinishedSnapshotOfUpstream(t *testing.T) {
	m := diskOf(t, samples)
	put(t, m, "snapshot.99.tmp", get(t, m, "snapshot.95"))
	put(t, m, "tmp.snapshot.a1", []byte("half"))
	rep, err := Check(m, dataOptions)
	must(t, err)
	if len(rep.Damage) > 0 || len(rep.Notes) != 2 {
		t.Errorf("check: %v %v", rep.Damage, rep.Notes)
	}
	s := open(t, m, dataOptions)
	res, err := s.Load(&recorded{})
	must(t, err)
	if res.Snapshot != 0x95 || res.Txns != 12 || len(res.Notes) != 1 || !strings.Contains(res.Notes[0], "snapshot.99.tmp") {
		t.Errorf("%+v", res)
	}
	if got := fmt.Sprint(names(t, m)); strings.Contains(got, " snapshot.99") || strings.Contains(got, "tmp.snapshot.a1") {
		t.Errorf("files %v", got)
	}
	must(t, s.Close())
}

// TestOldRecords: records of older servers have no digest, no body in closeSession, or no
// parent counter in create. They are loaded, and are encoded to the same bytes again.
func TestOldRecords(t *testing.T) {
	m, _ := filled(t, 0)
	raw := appendLogHeader(nil)
	var err error
	for _, old := range []*record.Txn{
		{TxnHeader: record.TxnHeader{Session: 7, Zxid: 1, Type: wire.OpCreateSession}, Body: &record.CreateSessionTxn{TimeoutMS: 9}},
		{TxnHeader: record.TxnHeader{Session: 7, Zxid: 2, Type: wire.OpCloseSession}},
		{TxnHeader: record.TxnHeader{Session: 7, Zxid: 3, Type: wire.OpCloseSession}, Digest: &record.TxnDigest{Version: 2, Tree: 8}},
		{TxnHeader: record.TxnHeader{Session: 7, Zxid: 4, Type: wire.OpError}, Body: &record.ErrorTxn{Err: -110}},
	} {
		raw, err = appendRecord(new(wire.Coder), raw, old)
		must(t, err)
	}
	v0 := wire.Append(nil, &record.TxnHeader{Session: 7, Zxid: 5, Type: wire.OpCreate})
	create := wire.Append(nil, &record.CreateTxn{Path: "/old", Data: []byte("d"), ACL: wire.OpenACL()})
	v0 = append(v0, create[:len(create)-4]...)
	first, err := record.DecodeTxn(v0)
	must(t, err)
	raw, err = appendRecord(new(wire.Coder), raw, first)
	must(t, err)
	put(t, m, "log.1", raw)
	again := appendLogHeader(nil)
	n := 0
	for e, err := range DumpLog(m, filepath.Join("/data", versionDir, "log.1")) {
		must(t, err)
		again, err = appendRecord(new(wire.Coder), again, e.Txn)
		must(t, err)
		n++
	}
	if n != 5 || !bytes.Equal(again, raw) {
		t.Errorf("%d records, the same: %v", n, bytes.Equal(again, raw))
	}
	r := loaded(t, m)
	if len(r.txns) != 5 {
		t.Errorf("%d transactions", len(r.txns))
	}
}
