package interleave

import (
	"maps"

	"bellwether/internal/interleave/schedule"
	"bellwether/internal/record"
	"bellwether/internal/store"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// disk is a memory file system. Each call that changes it stops the goroutine first.
type disk struct {
	*store.Mem
	changes int // number of calls that have changed it
	images  []*image
	cut     uint64 // decides what the power failures keep
}

// image is the disk after a power failure.
type image struct {
	at    int       // disk.changes
	acked wire.Zxid // the last transaction that a client had seen
	line  int       // of the trace
	fs    *store.Mem
}

// seen records that a client has seen a transaction, at a line of the trace. A power failure
// now must not lose it.
func (d *disk) seen(z wire.Zxid, line int) {
	n := len(d.images)
	if n == 0 || d.images[n-1].at != d.changes {
		d.cut++
		d.images = append(d.images, &image{at: d.changes, fs: d.Clone(d.cut)})
		n++
	}
	if last := d.images[n-1]; z > last.acked {
		last.acked, last.line = z, line
	}
}

// step is called before each change.
func (d *disk) step(what string) {
	schedule.Point(what)
	d.changes++
}

func (d *disk) Create(name string) (store.File, error) {
	d.step("create a file")
	return d.wrap(d.Mem.Create(name))
}

func (d *disk) Append(name string) (store.File, error) { return d.wrap(d.Mem.Append(name)) }

func (d *disk) Rename(from, to string) error {
	d.step("rename a file")
	return d.Mem.Rename(from, to)
}

func (d *disk) Remove(name string) error {
	d.step("remove a file")
	return d.Mem.Remove(name)
}

func (d *disk) SyncDir(dir string) error {
	d.step("fsync a folder")
	return d.Mem.SyncDir(dir)
}

func (d *disk) wrap(f store.File, err error) (store.File, error) {
	if err != nil {
		return nil, err
	}
	return &file{f, d}, nil
}

// file is a file of a disk.
type file struct {
	store.File
	disk *disk
}

func (f *file) WriteAt(b []byte, off int64) (int, error) {
	f.disk.step("write a file")
	return f.File.WriteAt(b, off)
}

func (f *file) Truncate(size int64) error {
	f.disk.step("cut a file")
	return f.File.Truncate(size)
}

func (f *file) Sync() error {
	f.disk.step("fsync a file")
	return f.File.Sync()
}

// recovered is what a server finds on a disk.
type recovered struct {
	zxid wire.Zxid
	data map[string]string // by path, without the built-in znodes
}

// recoverFrom cuts the power of a disk and reads what is left. keeping is that of
// store.Mem.Crash.
func recoverFrom(fs *store.Mem, keeping int) (*recovered, error) {
	fs.Crash(keeping)
	st, err := store.Open(fs, store.Options{DataDir: dataDir, PreallocBytes: -1})
	if err != nil {
		return nil, err
	}
	t := tree.New(tree.Options{})
	loader := t.Loader()
	res, err := st.Load(loader)
	if err != nil {
		return nil, err
	}
	loader.Close()
	found := &recovered{res.LastZxid, map[string]string{}}
	err = t.Snapshot().Nodes(func(path string, n *record.DataNode) error {
		found.data[path] = string(n.Data)
		return nil
	})
	maps.DeleteFunc(found.data, func(path, _ string) bool { return builtIn(path) })
	return found, err
}
