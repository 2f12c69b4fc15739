package store

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
)

// sectorLen is the number of bytes that a disk writes as a whole or not at all.
const sectorLen = 512

// sector is never changed once it is part of a content, because copies share it.
type sector [sectorLen]byte

// content is a sparse file; a missing sector reads as zeros.
type content struct {
	size    int64
	sectors map[int64]*sector
}

func (c content) clone() content { return content{c.size, maps.Clone(c.sectors)} }

// cut shortens c to size.
func (c *content) cut(size int64) {
	for i := range c.sectors {
		if i*sectorLen >= size {
			delete(c.sectors, i)
		}
	}
	if last := c.sectors[size/sectorLen]; last != nil {
		short := *last
		clear(short[size%sectorLen:])
		c.sectors[size/sectorLen] = &short
	}
	c.size = size
}

// put sets sector i; nil makes it zeros.
func (c *content) put(i int64, s *sector) {
	if s == nil {
		delete(c.sectors, i)
	} else {
		c.sectors[i] = s
	}
}

func (c *content) readAt(b []byte, off int64) int {
	n := int(min(int64(len(b)), max(0, c.size-off)))
	for done := 0; done < n; {
		at := off + int64(done)
		part := b[done:min(n, done+int(sectorLen-at%sectorLen))]
		if s := c.sectors[at/sectorLen]; s != nil {
			copy(part, s[at%sectorLen:])
		} else {
			clear(part)
		}
		done += len(part)
	}
	return n
}

// memInode is a file as programs see it and as it is on the disk. sinceFsync holds the sectors
// written since the last fsync. cut is the smallest length since the last fsync if that is less
// than the length on the disk; otherwise -1. before is what the file held before the first truncation since
// the last fsync that removed something not fsynced; nil: there was none. The disk may have written that, because a
// system may write at any time, and a crash may lose the truncation. It is never changed, because copies share it.
type memInode struct {
	live, disk content
	sinceFsync map[int64]bool
	cut        int64
	before     *content
	spoilt     map[int64]error // sectors that cannot be read; nil: there are none
}

func newMemInode() *memInode {
	return &memInode{
		live:       content{sectors: map[int64]*sector{}},
		disk:       content{sectors: map[int64]*sector{}},
		sinceFsync: map[int64]bool{},
		cut:        -1,
	}
}

// sync carries out an fsync: it writes to the disk everything that may not be there yet.
func (ino *memInode) sync() {
	if ino.cut >= 0 {
		ino.disk.cut(ino.cut)
	}
	for i := range ino.sinceFsync {
		ino.disk.put(i, ino.live.sectors[i])
	}
	ino.disk.size = ino.live.size
	ino.forget()
}

// forget marks everything as written to the disk, although it may not be there.
func (ino *memInode) forget() {
	clear(ino.sinceFsync)
	ino.cut, ino.before = -1, nil
}

// unwritten reports whether something that was not fsynced lies behind an offset.
func (ino *memInode) unwritten(from int64) bool {
	if ino.live.size > max(from, ino.disk.size) {
		return true
	}
	for i := range ino.sinceFsync {
		if (i+1)*sectorLen > from && ino.live.sectors[i] != nil {
			return true
		}
	}
	return false
}

// crash decides which part of the file reached the disk.
func (ino *memInode) crash(rng *rand.Rand, keep func(*rand.Rand) bool, lost *Losses) {
	if ino.before != nil && keep(rng) {
		ino.disk, ino.live = ino.before.clone(), ino.before.clone()
		ino.forget()
		return
	}
	c := ino.disk
	cut := int64(-1)
	if ino.cut >= 0 && keep(rng) {
		cut = ino.cut
		c.cut(cut)
	}
	size := c.size
	if (ino.cut < 0 || cut >= 0) && keep(rng) {
		size = ino.live.size
	}
	missing, torn := false, false
	for _, i := range slices.Sorted(maps.Keys(ino.sinceFsync)) {
		if ino.cut >= 0 && cut < 0 && (i+1)*sectorLen > ino.cut {
			continue // the truncation is lost, and with it everything written after it
		}
		if !keep(rng) {
			missing = true
			continue
		}
		torn = torn || missing
		c.put(i, ino.live.sectors[i])
	}
	if torn {
		lost.Torn++
	}
	c.cut(size)
	ino.disk = c
	ino.live = c.clone()
	ino.forget()
}

// resize sets the length that programs see.
func (m *Mem) resize(ino *memInode, size int64) {
	before := len(ino.live.sectors)
	if size < ino.live.size {
		if ino.before == nil && ino.unwritten(size) {
			c := ino.live.clone()
			ino.before = &c
		}
		if size < ino.disk.size && (ino.cut < 0 || size < ino.cut) {
			ino.cut = size
		}
		for i := range ino.live.sectors {
			if (i+1)*sectorLen > size {
				ino.sinceFsync[i] = true
			}
		}
		ino.live.cut(size)
	}
	ino.live.size = size
	m.free(int64(before - len(ino.live.sectors)))
}

// write stores as much of b at off as there is space for.
func (m *Mem) write(ino *memInode, b []byte, off int64) (int, error) {
	for done := 0; done < len(b); {
		at := off + int64(done)
		i := at / sectorLen
		old := ino.live.sectors[i]
		if old == nil && !m.take(sectorLen) {
			return done, errNoSpace
		}
		var s sector
		if old != nil {
			s = *old
		}
		done += copy(s[at%sectorLen:], b[done:])
		ino.live.sectors[i] = &s
		ino.sinceFsync[i] = true
		delete(ino.spoilt, i)
		ino.live.size = max(ino.live.size, off+int64(done))
	}
	return len(b), nil
}

// memFile is a handle of a file.
type memFile struct {
	m        *Mem
	ino      *memInode
	name     string
	life     int
	writable bool
	closed   bool
}

// usable returns the reason why a handle cannot be used; nil if it can.
func (f *memFile) usable(write bool) error {
	switch {
	case f.m.down || f.life != f.m.life:
		return ErrCrashed
	case f.closed:
		return fs.ErrClosed
	case write && !f.writable:
		return fmt.Errorf("%s: %w", f.name, fs.ErrPermission)
	}
	return nil
}

func (f *memFile) ReadAt(b []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.usable(false); err != nil {
		return 0, err
	}
	if err := f.m.readStep(); err != nil {
		return 0, err
	}
	if err := f.ino.readable(off, int64(len(b))); err != nil {
		return 0, err
	}
	n := f.ino.live.readAt(b, off)
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt writes b, or a part of it if a crash or an error is planned.
func (f *memFile) WriteAt(b []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.usable(true); err != nil {
		return 0, err
	}
	crash, err := f.m.step(OpWrite)
	if fault := firstOf(err, crash); fault != nil {
		n, _ := f.m.write(f.ino, b[:f.m.rng.IntN(len(b)+1)], off)
		return n, fault
	}
	return f.m.write(f.ino, b, off)
}

func (f *memFile) Truncate(size int64) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.usable(true); err != nil {
		return err
	}
	crash, err := f.m.step(OpTruncate)
	if err != nil {
		return err
	}
	f.m.resize(f.ino, size)
	return crash
}

func (f *memFile) Allocate(size int64) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.usable(true); err != nil {
		return err
	}
	crash, err := f.m.step(OpAllocate)
	if err != nil {
		return err
	}
	if size > f.ino.live.size {
		if !f.m.room(size - f.ino.live.size) {
			return errNoSpace
		}
		f.m.resize(f.ino, size)
	}
	return crash
}

func (f *memFile) Sync() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.usable(false); err != nil {
		return err
	}
	crash, err := f.m.step(OpSync)
	if err != nil {
		clear(f.ino.sinceFsync) // the next fsync will not write it
		return err
	}
	if crash == nil && !f.m.liesAbout(f.name) {
		f.ino.sync()
	}
	return crash
}

func (f *memFile) Size() (int64, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return f.ino.live.size, f.usable(false)
}

func (f *memFile) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.usable(false); err != nil {
		return err
	}
	f.closed = true
	return nil
}
