package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"bellwether/internal/record"
	"bellwether/wire"
)

// logsFrom returns those of the logs, ascending by name, that can hold records above z:
// the last one that begins at or below z, and all after it.
func logsFrom(logs []fileName, z wire.Zxid) []fileName {
	for i := len(logs) - 1; i >= 0; i-- {
		if logs[i].zxid <= z {
			return logs[i:]
		}
	}
	return logs
}

// history walks logs in order and checks that they are one unbroken line of transactions
// that begins at base.
type history struct {
	fs   FS
	logs []fileName
	base wire.Zxid
	// unused are the zxids of snapshots above base. If the log jumps over one of them to
	// a later epoch, transactions are missing.
	unused []wire.Zxid
	// report gets each piece of damage. If it returns an error the walk ends; if it
	// returns nil the walk goes on after the damage where it can.
	report func(*DamageError) error
	// each gets every record, except those up to base and repeated ones.
	each func(logRecord) error

	last   wire.Zxid // the highest so far, at least base
	seen   wire.Zxid // the highest record so far, 0 before the first
	met    bool      // a record with the zxid of base was there
	lost   bool      // damage came before, so the next record need not follow
	torn   *logEnd   // the log that ended in the middle of a record
	recent recentSums
	ends   []logEnd
	jumps  []jump // where the line continues with a later epoch

	notes   []string
	repeats int // transactions that occurred a second time
}

// jump is a place where the line continues with a later epoch. The logs do not tell
// whether the earlier epoch had more transactions.
type jump struct{ prev, next wire.Zxid }

// logEnd describes how one log ended.
type logEnd struct {
	file    fileName
	records int
	first   wire.Zxid
	last    wire.Zxid
	end     int64 // the offset behind the last whole record
	size    int64
	how     verdict
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
		if end.how.ending == endTorn && end.records > 0 {
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
	if end.how, err = s.header(); err != nil {
		return end, fmt.Errorf("%s: %w", log.path, err)
	}
	for end.how.ending == endNone {
		var rec logRecord
		if rec, end.how, err = s.next(); err != nil {
			return end, fmt.Errorf("%s at offset %d: %w", log.path, s.off, err)
		}
		if end.how.ending != endNone {
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
	if end.how.ending == endDamaged {
		h.lost = true
		return end, h.report(damageAt(log.path, end.how.off, end.how.what))
	}
	return end, nil
}

// take adds one record to the line.
func (h *history) take(log fileName, rec logRecord) error {
	if rec.zxid <= h.seen {
		return h.repeated(log, rec)
	}
	prev := max(h.base, h.seen)
	h.seen = rec.zxid
	h.recent.add(rec)
	if rec.zxid <= h.base {
		h.met = rec.zxid == h.base
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
	err := h.each(rec)
	var bad *undecodable
	if errors.As(err, &bad) {
		return h.report(damageAt(log.path, rec.off, bad.Error()))
	}
	return err
}

// jumpsOver reports whether there is a snapshot between two records. A snapshot of this
// server is named after a record, so such a snapshot came from a leader.
func (h *history) jumpsOver(prev, next wire.Zxid) bool {
	return slices.ContainsFunc(h.unused, func(z wire.Zxid) bool { return prev < z && z < next })
}

// undecodable is the error of a whole record that does not contain a known transaction.
type undecodable struct{ error }

// decode returns the transaction of a record. It copies the record's memory.
func (rec logRecord) decode() (*record.Txn, error) {
	t, err := record.DecodeTxn(append(make([]byte, 0, len(rec.payload)), rec.payload...))
	if err != nil {
		return nil, &undecodable{err}
	}
	return t, nil
}

// lastHolding returns the index of the last of the logs that contains anything, -1 if
// none does.
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
	d := damageAt(log.path, rec.off, fmt.Sprintf("transaction %v comes after %v; those in between are missing", rec.zxid, prev))
	if t := h.torn; t != nil {
		d = damageAt(t.file.path, t.how.off,
			fmt.Sprintf("%s, and %s goes on with %v after %v", t.how.what, log.base(), rec.zxid, prev))
	}
	d.gap = true
	return d
}

// repeated ignores a transaction that the log has twice, as servers of some releases
// wrote it (ZOOKEEPER-4541). A different transaction with the same zxid is damage.
func (h *history) repeated(log fileName, rec logRecord) error {
	if sum, known := h.recent.find(rec.zxid); known && sum == rec.sum {
		if h.repeats++; h.repeats == 1 {
			h.notes = append(h.notes, fmt.Sprintf("%s at offset %d: transaction %v is there a second time; "+
				"such ones are passed over", log.path, rec.off, rec.zxid))
		}
		return nil
	}
	return h.report(damageAt(log.path, rec.off,
		fmt.Sprintf("transaction %v comes after %v and is not the one that was there before", rec.zxid, h.seen)))
}

// damageAt returns damage that only a copy of the history can repair.
func damageAt(path string, off int64, what string) *DamageError {
	return &DamageError{File: path, Offset: off, What: what, Do: doRestore}
}

// doRestore is the remedy for damage in the middle of the history.
const doRestore = "restore the directory from a copy; or, in an ensemble whose other members are sound, move everything " +
	"but myid out of this server's directories and let it be synchronised"

// recentMax is how many transactions back a repetition is recognised.
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
