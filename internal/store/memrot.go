package store

// Rot flips a bit of a file, on the disk and as programs see it, as a disk does that
// decays. It changes nothing and returns false if the byte was not written, or not fsynced
// since.
func (m *Mem) Rot(path string, off int64, bit uint) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	ino, i := m.fsynced(path, off)
	if ino == nil {
		return false
	}
	for _, c := range []*content{&ino.live, &ino.disk} {
		s := *c.sectors[i]
		s[off%sectorLen] ^= 1 << (bit % 8)
		c.sectors[i] = &s
	}
	return true
}

// Empty removes the content of a file, on the disk and as programs see it. The name stays. It changes
// nothing and returns false if there is no such file.
func (m *Mem) Empty(path string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	ino, err := m.find(path)
	if err != nil {
		return false
	}
	m.free(int64(len(ino.live.sectors)))
	*ino = *newMemInode()
	return true
}

// Spoil makes each read of the sector that contains a byte fail with err, until the sector
// is written again. It changes nothing and returns false if the byte was not written, or
// not fsynced since.
func (m *Mem) Spoil(path string, off int64, err error) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	ino, i := m.fsynced(path, off)
	if ino == nil {
		return false
	}
	if ino.spoilt == nil {
		ino.spoilt = map[int64]error{}
	}
	ino.spoilt[i] = err
	return true
}

// fsynced returns the file and the number of the sector of a byte that is on the disk; nil:
// it is not.
func (m *Mem) fsynced(path string, off int64) (*memInode, int64) {
	ino, err := m.find(path)
	i := off / sectorLen
	if err != nil || off < 0 || off >= ino.live.size || ino.sinceFsync[i] || ino.live.sectors[i] == nil || ino.disk.sectors[i] == nil {
		return nil, 0
	}
	return ino, i
}

// readable returns the error of the first spoilt sector that touches n bytes from off on;
// nil: there is none.
func (ino *memInode) readable(off, n int64) error {
	if len(ino.spoilt) == 0 {
		return nil
	}
	for i := off / sectorLen; i*sectorLen < min(off+n, ino.live.size); i++ {
		if err := ino.spoilt[i]; err != nil {
			return err
		}
	}
	return nil
}
