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
	// hang lets no change and no sync return; or it ends that, and those that
	// wait are carried out.
	hang(on bool)
	// abandon lets calls that wait for a disk that hangs fail: their process is
	// gone. The disk hangs on.
	abandon()
}

// memDisk is a disk in memory.
type memDisk struct{ mem *store.Mem }

func (d memDisk) hang(on bool) {
	if on {
		d.mem.Hang()
	} else {
		d.mem.Answer()
	}
}

func (d memDisk) abandon() { d.mem.Abandon() }

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
