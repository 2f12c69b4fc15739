package store

import "maps"

// Lie makes every fsync report success although nothing reaches the disk, until EndLie. A
// crash other than KeepAll then keeps only what was durable before Lie, if it keeps
// nothing of what was not fsynced (LoseAll). Changes that are always durable, such as
// MkdirAll, still are.
func (m *Mem) Lie() { m.LieAbout(func(string) bool { return true }) }

// LieAbout does what Lie does, only for some files: their content and their names.
func (m *Mem) LieAbout(these func(path string) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lies = these
}

// liesAbout reports whether an fsync of a file does nothing.
func (m *Mem) liesAbout(path string) bool { return m.lies != nil && m.lies(path) }

// settle makes the changes of names durable, except those of some names.
func (d *memDir) settle(except func(name string) bool) {
	var kept []map[string]*memInode
	for _, names := range d.pending {
		lost := false
		for name := range names {
			lost = lost || except(name)
		}
		if lost {
			kept = append(kept, names)
		} else {
			applyNames(d.disk, names)
		}
	}
	d.pending = kept
}

// EndLie ends Lie and LieAbout: everything that was written reaches the disk.
func (m *Mem) EndLie() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lies == nil {
		return
	}
	m.lies = nil
	for _, d := range m.dirs {
		d.disk, d.pending = maps.Clone(d.live), nil
		for _, ino := range d.live {
			ino.sync()
		}
	}
}

// Lies reports whether the file system lies about any file.
func (m *Mem) Lies() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lies != nil
}
