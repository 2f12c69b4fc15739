package embed

import "bellwether/internal/store"

// disk is the part of a server that survives when the server is killed.
type disk interface {
	fs() store.FS
	// fail lets no further change reach the disk, as when the power fails.
	fail()
	// lose restarts the disk without what was not fsynced. fail was called before.
	lose() error
	// keep restarts the disk with everything that was written.
	keep() error
	// hang makes every change and fsync wait, or ends that, so that those that wait are
	// carried out.
	hang(on bool)
	// abandon lets the calls fail that wait for a disk that hangs, because their process
	// has ended. The disk still hangs.
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
