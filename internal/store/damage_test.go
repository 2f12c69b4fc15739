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

// filled creates a disk with snapshot 0 and one log of n transactions, with an fsync
// after each transaction. The log is closed and has no padding.
func filled(t testing.TB, n int) (*Mem, *driver) {
	t.Helper()
	d := newDriver(NewMem(1), dataOptions)
	must(t, d.start())
	for z := range n {
		must(t, d.commit(wire.Zxid(z+1)))
	}
	must(t, d.s.Close())
	return d.m, d
}

// load opens and loads a disk, and closes it again.
func load(m FS, o Options) (*world, LoadResult, error) {
	w := newWorld()
	res, err := loadInto(m, o, w)
	return w, res, err
}

func loadInto(m FS, o Options, sink Sink) (LoadResult, error) {
	s, err := Open(m, o)
	if err != nil {
		return LoadResult{}, err
	}
	res, err := s.Load(sink)
	return res, errors.Join(err, s.Close())
}

// refused checks that a disk does not load because the named file is damaged at an offset
// in [from, to). It also checks that the failed load changes nothing, and that Check
// reports the same damage.
func refused(t *testing.T, m *Mem, name string, from, to int64) {
	t.Helper()
	before := names(t, m)
	was := make(map[string][]byte)
	for _, n := range before {
		was[n] = get(t, m, n)
	}
	rep, err := Check(m, dataOptions)
	must(t, err)
	_, err = loadInto(m, dataOptions, &recorded{})
	var d *DamageError
	if !errors.As(err, &d) || filepath.Base(d.File) != name || d.Offset < from || d.Offset >= to || d.Do == "" {
		t.Fatalf("load: %v; want damage of %s in [%d, %d)", err, name, from, to)
	}
	same := func(r *DamageError) bool { return r.File == d.File && r.Offset == d.Offset }
	if !slices.ContainsFunc(rep.Damage, same) || rep.LastZxid != -1 {
		t.Fatalf("check says %v (last %v), load said %v", rep.Damage, rep.LastZxid, d)
	}
	for _, n := range names(t, m) {
		if !bytes.Equal(was[n], get(t, m, n)) {
			t.Fatalf("%s was changed", n)
		}
	}
	if len(was) != len(names(t, m)) {
		t.Fatalf("files are %s, were %s", names(t, m), before)
	}
}

// TestFlippedBitInLastLog: a flipped bit anywhere in the last log is reported as damage.
// It is not taken for a torn write, even if the record contains sectors of zeros, and
// nothing acknowledged is cut off because of it. Version and dbid of the header are not
// checked.
func TestFlippedBitInLastLog(t *testing.T) {
	m, _ := filled(t, 8)
	raw := get(t, m, "log.1")
	var ends []int64
	for e, err := range DumpLog(m, filepath.Join("/data", versionDir, "log.1")) {
		must(t, err)
		ends = append(ends, e.End)
	}
	recorded := 0
	for at := 0; at < len(raw); at += apart {
		if at >= 4 && at < logHeaderLen {
			continue
		}
		from, to := int64(0), int64(1)
		if at >= logHeaderLen {
			for int64(at) >= ends[recorded] {
				recorded++
			}
			from, to = logHeaderLen, ends[recorded]
			if recorded > 0 {
				from = ends[recorded-1]
			}
		}
		for _, flip := range []byte{1 << (at % 8), 0xff} {
			broken := slices.Clone(raw)
			broken[at] ^= flip
			put(t, m, "log.1", broken)
			refused(t, m, "log.1", from, to)
		}
	}
}

// sized returns a transaction with data of a size.
func sized(z wire.Zxid, size int) *record.Txn {
	t := txn(z, 'a')
	t.Body.(*record.CreateTxn).Data = bytes.Repeat([]byte{'a'}, size)
	return t
}

// recordsAt creates a disk with three transactions in one log, of which the second begins
// at an offset within its sector. It returns where the second begins and ends.
func recordsAt(t *testing.T, within int) (m *Mem, from, to int64) {
	t.Helper()
	fill := sectorLen + within - logHeaderLen - recordOver - len(sized(1, 0).Append(nil))
	d := newDriver(NewMem(1), dataOptions)
	must(t, d.start())
	for _, x := range []*record.Txn{sized(1, fill), sized(2, 40), sized(3, 40)} {
		must(t, d.s.Append([]*record.Txn{x}))
		must(t, d.s.Sync())
	}
	must(t, d.s.Close())
	ends := []int64{}
	for e, err := range DumpLog(d.m, filepath.Join("/data", versionDir, "log.1")) {
		must(t, err)
		ends = append(ends, e.End)
	}
	if len(ends) != 3 || ends[0]%sectorLen != int64(within) {
		t.Fatalf("the records end at %d, want the first one at %d of a sector", ends, within)
	}
	return d.m, ends[0], ends[1]
}

// TestFlippedBitAtTheEndOfASector: a flipped bit of a record is reported as damage, and not
// cut off as torn, also if only the first few bytes of the record are in the sector where
// it begins. These bytes are zeros in every record, so that they do not show that a sector
// is missing.
func TestFlippedBitAtTheEndOfASector(t *testing.T) {
	for within := sectorLen - 14; within < sectorLen+4; within++ {
		m, from, to := recordsAt(t, within%sectorLen)
		raw := get(t, m, "log.1")
		for at := from; at < to; at++ {
			for bit := range 8 {
				broken := slices.Clone(raw)
				broken[at] ^= 1 << bit
				if broken[at] == 0 && allZero(broken[from:min((from/sectorLen+1)*sectorLen, int64(len(broken)))]) {
					continue // exactly as if the sector were missing
				}
				put(t, m, "log.1", broken)
				_, err := loadInto(m, dataOptions, &recorded{})
				var d *DamageError
				if !errors.As(err, &d) || d.Offset < from || d.Offset >= to {
					t.Fatalf("bit %d at %d of the record at %d of a sector: %v, want damage", bit, at-from, within, err)
				}
			}
		}
	}
}

// TestTwoFlippedBitsInRecord: a record whose length and one more byte are wrong is reported as
// damage, and not cut off as torn with all that follow it, although it claims more bytes than
// the file has. A whole record of a later transaction shows that it ended before.
func TestTwoFlippedBitsInRecord(t *testing.T) {
	for within := sectorLen - 14; within < sectorLen+4; within++ {
		m, from, to := recordsAt(t, within%sectorLen)
		raw := get(t, m, "log.1")
		for at := from + 4; at < to; at++ {
			broken := slices.Clone(raw)
			broken[from+9] ^= 4 // 256 KiB
			broken[at] ^= 1
			put(t, m, "log.1", broken)
			refused(t, m, "log.1", from, to)
		}
	}
}

// TestCutWithinRecordOfARecord: the data of a torn record may look like an earlier record of
// the log. That is not damage.
func TestCutWithinRecordOfARecord(t *testing.T) {
	m, _ := filled(t, 4)
	raw := get(t, m, "log.1")
	outer := sized(5, 0)
	outer.Body.(*record.CreateTxn).Data = raw[logHeaderLen:]
	long, err := appendRecord(new(wire.Coder), slices.Clone(raw), outer)
	must(t, err)
	put(t, m, "log.1", long[:len(long)-5])
	w, _, err := load(m, dataOptions)
	if err != nil || w.last != 4 {
		t.Errorf("the log ends at %v: %v, want 4", w.last, err)
	}
}

// TestFlippedBitInOlderLog: a flipped bit in a log that is not the last one is reported
// as damage too.
func TestFlippedBitInOlderLog(t *testing.T) {
	m := diskOf(t, samples)
	drop(t, m, "snapshot.91")
	drop(t, m, "snapshot.95")
	raw := get(t, m, "log.3e")
	for at := logHeaderLen; at < len(raw); at += 13 * apart {
		broken := slices.Clone(raw)
		broken[at] ^= 1 << (at % 8)
		put(t, m, "log.3e", broken)
		rep, err := Check(m, dataOptions)
		must(t, err)
		_, err = loadInto(m, dataOptions, &recorded{})
		var d *DamageError
		if !errors.As(err, &d) || filepath.Base(d.File) != "log.3e" || d.Offset > int64(at) || len(rep.Damage) == 0 || *rep.Damage[0] != *d {
			t.Fatalf("flipped at %d: %v; check: %v", at, err, rep.Damage)
		}
	}
}

// TestFlippedBitInSnapshot: if the newest snapshot has a flipped bit, an older one and
// the logs give the same history. Check reports the damage.
func TestFlippedBitInSnapshot(t *testing.T) {
	m := diskOf(t, samples)
	raw := get(t, m, "snapshot.95")
	for at := 0; at < len(raw); at += 37 * apart {
		broken := slices.Clone(raw)
		broken[at] ^= 1 << (at % 8)
		put(t, m, "snapshot.95", broken)
		s := open(t, m, dataOptions)
		res, err := s.Load(&recorded{})
		must(t, err)
		must(t, s.Close())
		if res.Snapshot != 0x91 || res.LastZxid != 0xa1 || len(res.Notes) == 0 || !strings.Contains(res.Notes[0], "snapshot.95") {
			t.Fatalf("flipped at %d: %+v", at, res)
		}
		rep, err := Check(m, dataOptions)
		must(t, err)
		if len(rep.Damage) != 1 || filepath.Base(rep.Damage[0].File) != "snapshot.95" || rep.LastZxid != 0xa1 {
			t.Fatalf("flipped at %d: check says %v, %v", at, rep.Damage, rep.Notes)
		}
	}
	drop(t, m, "snapshot.0")
	drop(t, m, "snapshot.3c")
	drop(t, m, "snapshot.91")
	raw[100] ^= 1
	put(t, m, "snapshot.95", raw)
	refused(t, m, "snapshot.95", 0, int64(len(raw)))
}

// TestRemovedFiles: a removed file is reported if something shows that it is missing: a
// gap between zxids, no snapshot at all, or logs that end before a damaged snapshot.
func TestRemovedFiles(t *testing.T) {
	for _, c := range []struct {
		remove []string
		name   string
		off    int64
	}{
		{[]string{"snapshot.91", "snapshot.95", "log.3e"}, "log.93", 16},
		{[]string{"snapshot.91", "snapshot.95", "log.93"}, "log.96", 16},
		{[]string{"snapshot.3c", "snapshot.91", "snapshot.95", "log.1"}, "log.3e", 16},
		{[]string{"snapshot.0", "snapshot.3c", "snapshot.91", "snapshot.95"}, "log.96", 0},
	} {
		m := diskOf(t, samples)
		for _, name := range c.remove {
			drop(t, m, name)
		}
		refused(t, m, c.name, c.off, c.off+1)
	}
	m := diskOf(t, samples)
	drop(t, m, "log.93")
	drop(t, m, "log.96")
	raw := get(t, m, "snapshot.95")
	raw[5000] ^= 4
	put(t, m, "snapshot.95", raw)
	refused(t, m, "snapshot.95", 1, int64(len(raw)))
}

// TestRecordsCutOut: if records are cut out of the middle of a log, the gap is reported
// as damage.
func TestRecordsCutOut(t *testing.T) {
	m, _ := filled(t, 8)
	raw := get(t, m, "log.1")
	var ends []int64
	for e, err := range DumpLog(m, filepath.Join("/data", versionDir, "log.1")) {
		must(t, err)
		ends = append(ends, e.End)
	}
	put(t, m, "log.1", slices.Concat(raw[:ends[2]], raw[ends[3]:]))
	refused(t, m, "log.1", ends[2], ends[2]+1)
	put(t, m, "log.1", slices.Concat(raw[:ends[2]], raw[ends[1]:]))
	w, res, err := load(m, dataOptions)
	if err != nil || w.last != 8 || len(res.Notes) != 1 {
		t.Errorf("a record twice: %v %+v", err, res)
	}
	other, err := appendRecord(new(wire.Coder), nil, txn(3, 'x'))
	must(t, err)
	put(t, m, "log.1", slices.Concat(raw[:ends[2]], other, raw[ends[2]:]))
	refused(t, m, "log.1", ends[2], ends[2]+1)
}

// TestCutOffAnywhere: the last log is cut off at each offset, either at the end of the
// file or by zeros up to the end of the padding. It loads up to its last whole record.
// The rest is removed and kept in another file, and the log continues.
func TestCutOffAnywhere(t *testing.T) {
	m, d := filled(t, 8)
	raw := get(t, m, "log.1")
	var ends []int64
	for e, err := range DumpLog(m, filepath.Join("/data", versionDir, "log.1")) {
		must(t, err)
		ends = append(ends, e.End)
	}
	for at := 0; at < len(raw); at += 3 * apart {
		want := wire.Zxid(0)
		for _, end := range ends {
			if end <= int64(at) {
				want++
			}
		}
		for _, padded := range []bool{false, true} {
			c := m.Clone(uint64(at))
			cut := slices.Clone(raw[:at])
			if padded {
				cut = append(cut, make([]byte, 10000)...)
			}
			put(t, c, "log.1", cut)
			rep, err := Check(c, dataOptions)
			must(t, err)
			w, _, err := load(c, dataOptions)
			if err != nil || len(rep.Damage) > 0 || rep.LastZxid != want {
				t.Fatalf("cut at %d (padded %v): %v; check %v, %v", at, padded, err, rep.Damage, rep.LastZxid)
			}
			if diff := w.diff(d.states[want]); diff != "" {
				t.Fatalf("cut at %d: %s", at, diff)
			}
		}
	}
}

// TestTailIsKept: what is cut off the end of a log is kept in another file, unless it is
// only zeros.
func TestTailIsKept(t *testing.T) {
	m, _ := filled(t, 4)
	raw := get(t, m, "log.1")
	put(t, m, "log.1", slices.Concat(raw, raw[16:500], make([]byte, 3000)))
	_, res, err := load(m, dataOptions)
	must(t, err)
	if len(res.Notes) != 1 || !strings.Contains(res.Notes[0], "cut off") {
		t.Errorf("notes %q", res.Notes)
	}
	kept := get(t, m, fmt.Sprintf("aside.log.1.from-%d", len(raw)))
	if !bytes.HasPrefix(kept, raw[16:500]) || !bytes.Equal(get(t, m, "log.1"), raw) {
		t.Error("the tail is not there, or the log is not cut")
	}
}

// TestMissingSectorFarBack: a missing sector in the last log counts as a torn write only
// near the end, where the last batch may have been written. Data before that was fsynced,
// so a missing sector there is damage.
func TestMissingSectorFarBack(t *testing.T) {
	raw := appendLogHeader(nil)
	var err error
	data := bytes.Repeat([]byte{'d'}, 1<<20)
	for z := wire.Zxid(1); z <= 12; z++ {
		create := &record.Txn{TxnHeader: record.TxnHeader{Zxid: z, Type: wire.OpCreate}, Body: &record.CreateTxn{Path: nodeOf(z), Data: data}}
		raw, err = appendRecord(new(wire.Coder), raw, create)
		must(t, err)
	}
	m, _ := filled(t, 0)
	for _, c := range []struct {
		at   int64
		last wire.Zxid // -1: the load is refused
	}{{2 << 20, -1}, {8 << 20, 7}, {int64(len(raw)) / sectorLen * sectorLen, 11}} {
		broken := slices.Clone(raw)
		clear(broken[c.at:min(int64(len(broken)), c.at+sectorLen)])
		put(t, m, "log.1", broken)
		if c.last < 0 {
			refused(t, m, "log.1", 1<<20, 2<<20)
			continue
		}
		w, _, err := load(m.Clone(1), dataOptions)
		if err != nil || w.last != c.last {
			t.Errorf("sector at %d missing: %v, last %v, want %v", c.at, err, w.last, c.last)
		}
	}
}

// TestZerosWithinSector: zeros that cover only half of a sector do not count as a torn
// write.
func TestZerosWithinSector(t *testing.T) {
	m, _ := filled(t, 8)
	raw := get(t, m, "log.1")
	clear(raw[600:700])
	put(t, m, "log.1", raw)
	refused(t, m, "log.1", 16, 700)
}

// TestUnknownTransaction: a whole record that cannot be decoded is damage, not the end of
// the log.
func TestUnknownTransaction(t *testing.T) {
	m, _ := filled(t, 3)
	raw := get(t, m, "log.1")
	odd := &record.Txn{TxnHeader: record.TxnHeader{Zxid: 4, Type: 77}}
	more, err := appendRecord(new(wire.Coder), slices.Clone(raw), odd)
	must(t, err)
	put(t, m, "log.1", more)
	refused(t, m, "log.1", int64(len(raw)), int64(len(raw))+1)
}
