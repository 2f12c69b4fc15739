package embed

import "bellwether/internal/store"

// disk is what a server keeps when it ends without order.
type disk interface {
	fs() store.FS
	// fail lets nothing more get to the disk: the power goes.
	fail()
	// lose brings the disk up without what was not synced; fail came before.
	lose() error
	// keep brings it up with everything that was written.
	keep() error
}

// memDisk is a disk in memory.
type memDisk struct{ mem *store.Mem }

func (d memDisk) fs() store.FS { return d.mem }

func (d memDisk) fail() { d.mem.CrashAt(1) }

func (d memDisk) lose() error {
	d.mem.Crash(store.LoseAll)
	return nil
}

func (d memDisk) keep() error {
	d.mem.Crash(store.KeepAll)
	return nil
}
