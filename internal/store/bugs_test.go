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

// Bugs of the field, each named after the thread that tells of it.

// A crash while a log is created leaves one without a record; the start goes
// on, the file is set aside, and its name can be used again.
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

// Empty, broken or missing snapshots never make a server start with an empty
// tree when there are transactions.
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

// With snapshot.trust.empty the logs are replayed, not forgotten; they must
// begin at the beginning; and nothing is logged before there is a snapshot.
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

// A snapshot received from a leader is on disk before anything is said of it:
// after a restart nothing before it is missing, and the log goes on behind it.
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

// The history in which such a snapshot is broken ends before it: to start
// there would be to go back in time.
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

// A truncation also takes out the snapshots that know of what is cut, by
// their name or by their digest block: nothing of it comes back, not even
// after the same zxids were given to others.
func TestTruncateTakesSnapshots_ZOOKEEPER_4837(t *testing.T) {
	d := newDriver(NewMem(1), dataOptions)
	must(t, d.start())
	must(t, d.commit(1, 2, 3, 4))
	must(t, d.snapshot(2)) // knows of 4
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

// A truncation that a crash interrupts anywhere is finished by the next
// start, or never happened.
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

// What is acknowledged follows the log when it is cut back (ClickHouse Keeper
// 102629: an index that stayed ahead acknowledged what was not on disk).
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

// A learner is never given a history from which a part is missing.
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

// A log whose transactions are there twice, as half-stopped servers wrote
// them, loads each once.
func TestTransactionsTwice_ZOOKEEPER_4541(t *testing.T) {
	m, d := filled(t, 6)
	raw := get(t, m, "log.1")
	put(t, m, "log.1", append(raw, raw[logHeaderLen:]...))
	w, res, err := load(m, dataOptions)
	if err != nil || w.diff(d.states[6]) != "" || len(res.Notes) != 1 || res.Txns != 6 {
		t.Errorf("%v %+v", err, res)
	}
}

// The snapshot's name and content never run ahead of the log (etcd 13766: a
// revision that does not match what was applied after a crash under load).
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

// A fuzzy snapshot whose later effects the log has lost is not used: an older
// one and the log agree, it and the log do not.
func TestFuzzySnapshotNeedsItsLog(t *testing.T) {
	m := diskOf(t, samples)
	for _, name := range []string{"snapshot.95", "log.93", "log.96"} {
		drop(t, m, name)
	}
	b := get(t, m, "log.3e")
	put(t, m, "log.3e", b[:len(b)-1]) // ends at 0x91, snapshot.91 knows of 0x92
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

// One server alone loses nothing that it acknowledged, with group commit and
// whatever the crash keeps (etcd 14370).
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

// A crash during snapshot, purge, roll or compression, at every change, in
// every form (etcd 14685); the last zxid never goes down (etcd 17780).
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

// An unfinished snapshot of upstream's keeps a name that upstream would
// believe; it is set aside before it can do harm to either.
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

// Records of older servers: no digest, no body in closeSession, no parent
// counter in create. They load, and are written again as they were.
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
