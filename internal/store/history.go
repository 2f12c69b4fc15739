package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"bellwether/internal/record"
	"bellwether/wire"
)

// logsFrom returns the logs that can hold records above z: the last log that begins at or
// below z, and all after it. logs must be sorted by name.
func logsFrom(logs []fileName, z wire.Zxid) []fileName {
	for i := len(logs) - 1; i >= 0; i-- {
		if logs[i].zxid <= z {
			return logs[i:]
		}
	}
	return logs
}

// history walks logs in order and checks that their transactions follow each other
// without a gap, beginning at base.
type history struct {
	fs   FS
	logs []fileName
	base wire.Zxid
	// unused are the zxids of snapshots above base. If the log jumps over one of them to
	// a later epoch, transactions are missing.
	unused []wire.Zxid
	// report is called for each piece of damage. If it returns an error, the walk ends.
	// If it returns nil, the walk continues after the damage where it can.
	report func(*DamageError) error
	// eachRecord is called for every record, except repeated ones and those up to base.
	eachRecord func(logRecord) error

	last     wire.Zxid // the highest zxid so far, at least base
	seen     wire.Zxid // the zxid of the highest record so far, 0 before the first
	baseSeen bool      // the record whose zxid is base was found
	lost     bool      // damage came before the next record, so a gap is allowed there
	torn     *logEnd   // the log that ended in the middle of a record
	recent   recentSums
	ends     []logEnd
	jumps    []jump // where the records continue with a later epoch

	notes   []string
	repeats int // transactions that occurred a second time
}

// jump is a place where the records continue with a later epoch. The logs do not tell
// whether the earlier epoch had more transactions.
type jump struct{ prev, next wire.Zxid }

// logEnd describes how one log ended.
type logEnd struct {
	file    fileName
	records int
	first   wire.Zxid
	last    wire.Zxid
	end     int64 // the offset after the last whole record
	size    int64
	verdict verdict
}

func (h *history) walk() error {
	h.last = h.base
	outer, err := lastHolding(h.fs, h.logs)
	if err != nil {
		return err
	}
	for i, log := range h.logs {
		end, err := h.walkLog(log, i < outer)
		if err != nil {
			return err
		}
		h.ends = append(h.ends, end)
		if end.verdict.ending == endTorn && end.records > 0 {
			h.torn = &h.ends[len(h.ends)-1]
		}
	}
	return nil
}

func (h *history) walkLog(log fileName, inner bool) (end logEnd, err error) {
	s, err := openLog(h.fs, log.path)
	if err != nil {
		return end, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	s.inner = inner
	end = logEnd{file: log, size: s.size}
	if end.verdict, err = s.header(); err != nil {
		return end, fmt.Errorf("%s: %w", log.path, err)
	}
	for end.verdict.ending == endNone {
		var rec logRecord
		if rec, end.verdict, err = s.next(); err != nil {
			return end, fmt.Errorf("%s at offset %d: %w", log.path, s.off, err)
		}
		if end.verdict.ending != endNone {
			break
		}
		if end.records++; end.records == 1 {
			end.first = rec.zxid
		}
		end.last = rec.zxid
		if err := h.take(log, rec); err != nil {
			return end, err
		}
	}
	end.end = s.off
	if end.verdict.ending == endDamaged {
		h.lost = true
		return end, h.report(damageAt(log.path, end.verdict.off, end.verdict.what))
	}
	return end, nil
}

// take checks that one record continues the history, and passes it on.
func (h *history) take(log fileName, rec logRecord) error {
	if rec.zxid <= h.seen {
		return h.repeated(log, rec)
	}
	prev := max(h.base, h.seen)
	h.seen = rec.zxid
	h.recent.add(rec)
	if rec.zxid <= h.base {
		h.baseSeen = rec.zxid == h.base
		return nil
	}
	if !h.lost && (!record.Follows(prev, rec.zxid) || h.jumpsOver(prev, rec.zxid)) {
		if err := h.report(h.gap(log, rec, prev)); err != nil {
			return err
		}
	}
	if rec.zxid != prev+1 {
		h.jumps = append(h.jumps, jump{prev, rec.zxid})
	}
	h.lost, h.torn = false, nil
	h.last = rec.zxid
	err := h.eachRecord(rec)
	if err == nil {
		return nil
	}
	var bad *undecodable
	if errors.As(err, &bad) {
		return h.report(damageAt(log.path, rec.off, bad.Error()))
	}
	return err
}

// jumpsOver reports whether there is a snapshot between two records. Such a snapshot came
// from a leader, because this server names its own snapshots after a record.
func (h *history) jumpsOver(prev, next wire.Zxid) bool {
	return slices.ContainsFunc(h.unused, func(z wire.Zxid) bool { return prev < z && z < next })
}

// undecodable is the error for a complete record that does not contain a known
// transaction.
type undecodable struct{ error }

// decode returns the transaction of a record. It copies the record's memory.
func (rec logRecord) decode(d *record.TxnDecoder) (*record.Txn, error) {
	t, err := d.Decode(rec.payload)
	if err != nil {
		return nil, &undecodable{err}
	}
	return t, nil
}

// lastHolding returns the index of the last log that contains a record or damage; -1 if
// there is none.
func lastHolding(fs FS, logs []fileName) (int, error) {
	for i := len(logs) - 1; i >= 0; i-- {
		if yes, err := holdsAnything(fs, logs[i]); yes || err != nil {
			return i, err
		}
	}
	return -1, nil
}

// holdsAnything reports whether a log has a record, or damage that may hide one.
func holdsAnything(fs FS, log fileName) (yes bool, err error) {
	s, err := openLog(fs, log.path)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	v, err := s.header()
	if err == nil && v.ending == endNone {
		_, v, err = s.next()
	}
	return v.ending == endNone || v.ending == endDamaged, err
}

// gap describes the damage of a record that does not follow prev.
func (h *history) gap(log fileName, rec logRecord, prev wire.Zxid) *DamageError {
	d := damageAt(log.path, rec.off, fmt.Sprintf("transaction %v comes after %v; the transactions between them are missing", rec.zxid, prev))
	if t := h.torn; t != nil {
		d = damageAt(t.file.path, t.verdict.off,
			fmt.Sprintf("%s, and %s continues with %v after %v", t.verdict.what, log.base(), rec.zxid, prev))
	}
	d.gap = true
	return d
}

// repeated ignores a transaction that the log contains twice. Some releases of ZooKeeper
// wrote such logs (ZOOKEEPER-4541). A different transaction with the same zxid is damage.
func (h *history) repeated(log fileName, rec logRecord) error {
	if sum, known := h.recent.find(rec.zxid); known && sum == rec.sum {
		if h.repeats++; h.repeats == 1 {
			h.notes = append(h.notes, fmt.Sprintf("%s at offset %d: transaction %v is repeated; "+
				"repeated transactions are skipped", log.path, rec.off, rec.zxid))
		}
		return nil
	}
	return h.report(damageAt(log.path, rec.off,
		fmt.Sprintf("transaction %v comes after %v and differs from the earlier transaction with its zxid", rec.zxid, h.seen)))
}

// damageAt returns damage that only a copy of the history can repair.
func damageAt(path string, off int64, what string) *DamageError {
	return &DamageError{File: path, Offset: off, What: what, Do: doRestore}
}

// doRestore is the remedy for damage in the middle of the history.
const doRestore = "restore the directory from a copy; or, in an ensemble whose other members are sound, move the " +
	"folder version-2 out of this server's directories and let it be synchronised"

// recentMax is the number of last transactions among which a repetition is recognised.
const recentMax = 1 << 16

// recentSums are the checksums of the last transactions, ascending by zxid.
type recentSums struct{ list []zxidSum }

type zxidSum struct {
	zxid wire.Zxid
	sum  uint32
}

func (r *recentSums) add(rec logRecord) {
	if len(r.list) == 2*recentMax {
		r.list = append(r.list[:0], r.list[recentMax:]...)
	}
	r.list = append(r.list, zxidSum{rec.zxid, rec.sum})
}

func (r *recentSums) find(z wire.Zxid) (sum uint32, ok bool) {
	i, ok := slices.BinarySearchFunc(r.list, z, func(e zxidSum, z wire.Zxid) int { return cmp.Compare(e.zxid, z) })
	if !ok {
		return 0, false
	}
	return r.list[i].sum, true
}
