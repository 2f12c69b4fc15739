package sim

import (
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"bellwether/internal/record"
	"bellwether/internal/sim/machine"
	"bellwether/internal/store"
	"bellwether/wire"
)

// This file tries on copies of disks what happens too seldom to the disks themselves: that the power fails at a certain
// moment, that a file has decayed or is gone, and that a server purges or truncates its history. A trial disturbs
// nothing, and has a random source of its own.

// trialsEvery is of how many snapshots one is followed by a trial, because that takes long.
const trialsEvery = 6

// trial is a copy of a server's disk.
type trial struct {
	v      *server
	fs     *store.Mem
	random *machine.Random
	last   wire.Zxid // where the server's history ends
}

// trial returns a copy of a server's disk after a power failure. It returns nil if the disk need not hold what it was told
// to hold.
func (v *server) trial(keeping int) *trial {
	if !v.reliable() {
		return nil
	}
	d := v.sim.trials
	t := &trial{v, v.fs.Clone(d.Next()), d, max(0, v.store.Synced())}
	t.fs.Crash(keeping)
	return t
}

// nowhere is the value of server.unbroken if the disk may have lost any part of its history.
const nowhere wire.Zxid = math.MaxInt64

// fails ends the run.
func (t *trial) fails(format string, args ...any) {
	t.v.sim.fail("Recovery", "a copy of the disk of server %d, whose history ends at %v: "+format, append([]any{t.v.id, t.last}, args...)...)
}

// start ends the process that uses the copy, and reads the history as another one does.
func (t *trial) start() (*store.Store, store.LoadResult, error) {
	t.fs.Crash(store.KeepAll)
	st, err := store.Open(t.fs, storeOptions())
	if err != nil {
		return nil, store.LoadResult{}, err
	}
	res, err := st.Load(store.Discard{})
	return st, res, err
}

// finds checks that a start finds the history up to z. If not, the store is nil.
func (t *trial) finds(z wire.Zxid, when string) (*store.Store, store.LoadResult) {
	st, res, err := t.start()
	if err != nil || res.LastZxid != z {
		t.fails("%s, a start finds the history up to %v, not up to %v (%v)", when, res.LastZxid, z, err)
		return nil, res
	}
	return st, res
}

// refuses checks that a start refuses a damaged history.
func (t *trial) refuses(when string) {
	_, res, err := t.start()
	if damage := (*store.DamageError)(nil); !errors.As(err, &damage) {
		t.fails("%s, a start is not refused, and finds the history up to %v (%v)", when, res.LastZxid, err)
	}
}

// The beginnings of the names of snapshots and logs. The zxid in the name of a log is that of its first transaction.
const (
	snapshots = "snapshot."
	logs      = "log."
)

// zxids returns the zxids in the names of the snapshots or logs, in ascending order.
func (t *trial) zxids(kind string) (all []wire.Zxid) {
	files, err := t.fs.ReadDir(historyDir)
	if err != nil {
		t.fails("%v", err)
	}
	for _, f := range files {
		if hex, ok := strings.CutPrefix(f.Name, kind); ok {
			if z, err := strconv.ParseUint(hex, 16, 63); err == nil {
				all = append(all, wire.Zxid(z))
			}
		}
	}
	slices.Sort(all)
	return all
}

// unbroken returns the zxids of the snapshots that were enough, with the logs, if no later snapshot could be read.
func (t *trial) unbroken() []wire.Zxid {
	return slices.DeleteFunc(t.zxids(snapshots), func(z wire.Zxid) bool { return z < t.v.unbroken })
}

// path returns the path of a snapshot or log.
func (t *trial) path(kind string, z wire.Zxid) string {
	return filepath.Join(historyDir, kind+strconv.FormatUint(uint64(z), 16))
}

// decay flips a bit in the middle of a snapshot.
func (t *trial) decay(snapshot wire.Zxid) {
	path := t.path(snapshots, snapshot)
	if info, err := t.fs.Stat(path); err != nil || !t.fs.Rot(path, info.Size/2, 0) {
		t.fails("%s does not decay: %v", filepath.Base(path), err)
	}
}

// remove removes a snapshot or log.
func (t *trial) remove(kind string, z wire.Zxid) {
	if err := t.fs.Remove(t.path(kind, z)); err != nil {
		t.fails("%v", err)
	}
}

// forgetAfter removes all snapshots after z.
func (t *trial) forgetAfter(z wire.Zxid) {
	for _, s := range t.zxids(snapshots) {
		if s > z {
			t.remove(snapshots, s)
		}
	}
}

// trySnapshot makes a trial with a disk to which a snapshot was written, and which is not purged yet.
func (v *server) trySnapshot(written wire.Zxid) {
	if v.sim.trials.Below(trialsEvery) > 0 {
		return
	}
	t := v.trial(store.LoseAll)
	if t == nil {
		return
	}
	if !slices.Contains(t.zxids(snapshots), written) {
		t.fails("the snapshot of %v is reported as written, and a power failure loses it", written)
		return
	}
	switch t.random.Below(8) {
	case 0, 1:
		t.purge()
	case 2, 3:
		t.truncate()
	case 4:
		t.damage()
	case 5:
		t.loseLog()
	case 6:
		t.mixEpochs()
	case 7:
		t.read()
	}
}

// snapshotsKept is how many sound snapshots a purge keeps at least.
const snapshotsKept = 3

// purge lets another process purge the disk, perhaps after a snapshot has decayed, and perhaps while the power fails. The
// newest three sound snapshots stay, and so do the logs that the oldest of them needs.
func (t *trial) purge() {
	sound := t.unbroken()
	if len(sound) <= snapshotsKept {
		return
	}
	if t.random.Below(2) == 0 {
		i := len(sound) - 1 - int(t.random.Below(snapshotsKept))
		t.decay(sound[i])
		sound = slices.Delete(sound, i, i+1)
	}
	sound = sound[len(sound)-snapshotsKept:]
	st, _ := t.finds(t.last, "before a purge")
	if st == nil {
		return
	}
	t.v.sim.reach(situationTriedPurge)
	if t.random.Below(3) == 0 {
		t.fs.CrashAt(1 + int(t.random.Below(16)))
	}
	if _, err := st.Purge(1); err != nil && !errors.Is(err, store.ErrCrashed) {
		t.fails("a purge fails: %v", err)
		return
	}
	t.fs.Crash(2)
	left := t.zxids(snapshots)
	for _, z := range sound {
		if !slices.Contains(left, z) {
			t.fails("a purge leaves the snapshots %v, but the newest sound ones were %v", left, sound)
			return
		}
	}
	t.forgetAfter(sound[0])
	t.finds(t.last, "with the oldest snapshot that a purge must keep")
}

// truncate lets another process remove the end of the history, perhaps with snapshots, and perhaps while the power fails.
func (t *trial) truncate() {
	kept := t.unbroken()
	if len(kept) < 2 {
		return
	}
	targets := slices.DeleteFunc(append(t.zxids(logs), kept[1:]...), func(z wire.Zxid) bool {
		return z < kept[1] || z >= t.last || z.Counter() == 0 // the oldest snapshot has effects of transactions up to the next one
	})
	if len(targets) == 0 {
		return
	}
	to := targets[t.random.Below(int64(len(targets)))]
	st, _ := t.finds(t.last, "before a truncation")
	if st == nil {
		return
	}
	t.v.sim.reach(situationTriedTruncation)
	if t.random.Below(2) == 0 {
		t.fs.CrashAt(1 + int(t.random.Below(16)))
	}
	switch err := st.Truncate(to); {
	case err == nil:
		t.fs.Crash(store.LoseAll)
		t.finds(to, "after a truncation and a power failure")
	case !errors.Is(err, store.ErrCrashed):
		t.fails("it cannot be truncated to %v: %v", to, err)
	default:
		t.fs.Crash(2)
		if _, res, err := t.start(); err != nil || res.LastZxid != to && res.LastZxid != t.last {
			t.fails("after a power failure during a truncation to %v, a start finds the history up to %v (%v)", to, res.LastZxid, err)
		}
	}
}

// read lets another process read the log from some transaction on, also after an fsync of a later one has failed. The
// reader gets everything that is durable, and nothing else.
func (t *trial) read() {
	from := slices.DeleteFunc(t.zxids(logs), func(z wire.Zxid) bool { return z <= t.v.unbroken || z >= t.last })
	if len(from) == 0 {
		return
	}
	after := from[t.random.Below(int64(len(from)))]
	st, _ := t.finds(t.last, "before its log is read")
	if st == nil {
		return
	}
	t.v.sim.reach(situationTriedRead)
	for range 2 {
		var txn *record.Txn
		for next, err := range st.ReadLog(after) {
			if txn = next; err != nil {
				t.fails("its log cannot be read after %v: %v", after, err)
				return
			}
		}
		if txn == nil || txn.Zxid != t.last {
			t.fails("its log is read after %v, and not up to the end: %+v", after, txn)
			return
		}
		later := *txn
		later.Zxid++
		t.fs.Fail(store.OpSync, 1, errDisk)
		if err := errors.Join(st.Append([]*record.Txn{&later}), st.Sync()); !errors.Is(err, errDisk) {
			t.fails("its fsync does not fail: %v", err)
		}
	}
}

// damage changes two bytes of a transaction that is not the last one of the newest log.
func (t *trial) damage() {
	all := t.zxids(logs)
	if len(all) == 0 {
		return
	}
	path := t.path(logs, all[len(all)-1])
	var records []store.LogEntry
	for e, err := range store.DumpLog(t.fs, path) {
		if err != nil {
			t.fails("%v", err)
			return
		}
		records = append(records, e)
	}
	if len(records) < 2 {
		return
	}
	e := records[t.random.Below(int64(len(records)-1))]
	if e.Offset%sectorLen > sectorLen-2*headLen {
		return // a crash can leave a record whose first bytes are zeros up to the end of a sector
	}
	f, err := t.fs.Open(path)
	if err != nil {
		t.fails("%v", err)
		return
	}
	at := e.Offset + headLen + t.random.Below(e.End-e.Offset-headLen-2)
	var b [2]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.fails("%v", err)
		return
	}
	for i := range b {
		bit := uint(7)
		if b[i] == 1<<bit {
			bit = 6 // no byte becomes zero
		}
		t.fs.Rot(path, at+int64(i), bit)
	}
	t.v.sim.reach(situationTriedDamage)
	t.refuses("with two wrong bytes in " + filepath.Base(path))
}

// sectorLen is the length of a sector of a disk, and headLen that of what is before the transaction in a record of a log.
const sectorLen, headLen = 512, 12

// loseLog removes a log without which the oldest snapshot is not enough, and all other snapshots.
func (t *trial) loseLog() {
	kept, all := t.unbroken(), t.zxids(logs)
	if len(kept) == 0 {
		return
	}
	var needed []wire.Zxid
	for i := 1; i < len(all); i++ {
		if z := all[i]; z.Counter() > 1 && z > kept[0]+1 { // the log before has the transaction before; nothing shows a gap before an epoch
			needed = append(needed, all[i-1])
		}
	}
	if len(needed) == 0 {
		return
	}
	z := needed[t.random.Below(int64(len(needed)))]
	t.forgetAfter(kept[0])
	t.remove(logs, z)
	t.v.sim.reach(situationTriedGap)
	t.refuses("without the log that begins with " + z.String())
}

// mixEpochs gives the disk an acceptedEpoch before its currentEpoch.
func (t *trial) mixEpochs() {
	st, _ := t.finds(t.last, "before its epochs are mixed up")
	if st == nil {
		return
	}
	has, err := st.Epochs()
	if err != nil || has.Current == 0 {
		return
	}
	f, err := t.fs.Create(filepath.Join(historyDir, "acceptedEpoch"))
	if err == nil {
		_, err = f.WriteAt([]byte(strconv.FormatInt(int64(has.Current)-1, 10)), 0)
	}
	if err != nil {
		t.fails("%v", err)
		return
	}
	if st, _ = t.finds(t.last, "with another acceptedEpoch"); st == nil {
		return
	}
	t.v.sim.reach(situationTriedEpochs)
	if has, err = st.Epochs(); err == nil {
		t.fails("a start accepts currentEpoch %d and acceptedEpoch %d", has.Current, has.Accepted)
	}
}

// tryInstalled tries what a start does if the snapshot of a leader decays, which was just installed: the history before it
// is not enough, unless it ends there too.
func (v *server) tryInstalled(zxid wire.Zxid) {
	t := v.trial(store.LoseAll)
	if t == nil {
		return
	}
	if st, _ := t.finds(zxid, "after a snapshot was installed"); st == nil {
		return
	}
	t.decay(zxid)
	v.sim.reach(situationTriedInstalled)
	_, res, err := t.start()
	if damage := (*store.DamageError)(nil); !errors.As(err, &damage) && (err != nil || res.LastZxid < zxid) {
		t.fails("if the installed snapshot decays, a start is not refused, and finds the history up to %v (%v)", res.LastZxid, err)
	}
}

// tryFull checks that nothing that a full disk has refused comes back.
func (v *server) tryFull(last wire.Zxid) {
	if t := v.trial(2); t != nil {
		v.sim.reach(situationTriedFull)
		t.finds(last, "after the disk was full")
	}
}

// tryRepaired checks that the next start need not cut off again what this one has cut off.
func (v *server) tryRepaired(notes []string) {
	cutOff := func(note string) bool { return strings.Contains(note, "the log was cut off there") }
	if !slices.ContainsFunc(notes, cutOff) {
		return
	}
	t := v.trial(store.LoseAll)
	if t == nil {
		return
	}
	v.sim.reach(situationTriedRepair)
	if _, res := t.finds(t.last, "after the end of the log was cut off"); slices.ContainsFunc(res.Notes, cutOff) {
		t.fails("what this start has cut off is still there: %q", res.Notes)
	}
}
