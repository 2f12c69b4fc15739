package store

import "maps"

// Lie makes every fsync report success although nothing reaches the disk, until EndLie. A
// crash other than KeepAll then keeps only what was durable before Lie, if it keeps
// nothing of what was not fsynced (LoseAll). Changes that are always durable, such as
// MkdirAll, still are.
func (m *Mem) Lie() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lies = true
}

// EndLie ends Lie: everything that was written reaches the disk.
func (m *Mem) EndLie() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.lies {
		return
	}
	m.lies = false
	for _, d := range m.dirs {
		d.disk, d.pending = maps.Clone(d.live), nil
		for _, ino := range d.live {
			ino.sync()
		}
	}
}

// Lies reports whether the file system lies.
func (m *Mem) Lies() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lies
}
