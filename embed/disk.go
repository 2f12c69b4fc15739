package embed

import "bellwether/internal/store"

// disk is the disk of a server. It survives the end of the server's process.
type disk interface {
	fs() store.FS
	// fail prevents all further changes, like the loss of power.
	fail()
	// lose makes the disk usable again and drops everything that was not fsynced. fail must be called before.
	lose() error
	// keep makes the disk usable again, with everything that was written.
	keep() error
	// hang makes every change and every fsync wait. hang(false) ends that: the waiting calls are carried out.
	hang(on bool)
	// abandon makes the calls fail that wait for a hung disk, because their process has ended. The disk still
	// hangs.
	abandon()
}

// memDisk is a disk in memory.
type memDisk struct{ mem *store.Mem }

func (d memDisk) hang(on bool) {
	if on {
		d.mem.Hang()
	} else {
		d.mem.EndHang()
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
