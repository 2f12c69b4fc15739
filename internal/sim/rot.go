package sim

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"bellwether/internal/sim/machine"
	"bellwether/internal/store"
)

// This file is about disks that decay: bits of snapshots and logs flip, or a sector of them
// cannot be read any more. A disk decays only while the others can do without it. Its
// server may serve on. At its next start it falls back to an older snapshot if that and the
// logs are enough, or refuses to start; then an operator replaces the disk.

// decay flips a bit of a snapshot or log of a server, or spoils a sector.
func (v *server) decay(a Act) {
	path, off := v.oldByte(a.Value / 8)
	if path == "" || !v.expendable() || v.sim.opt.Focus > 0 && v.sim.otherRotten(v) {
		return
	}
	hit := false
	if a.Kind == Rot {
		hit = v.fs.Rot(path, off, uint(a.Value%8))
	} else {
		hit = v.fs.Spoil(path, off, errDisk)
	}
	if hit {
		v.rotten = true
		v.sim.tell("server %d: %s decays at offset %d", v.id, filepath.Base(path), off)
	}
}

// otherRotten reports whether the disk of another voter has decayed. Two disks must not decay before one of them is
// replaced where many acknowledgements are on their way for long: a transaction may then be committed because of an
// acknowledgement that was sent before the disk of its sender has decayed.
func (s *Sim) otherRotten(v *server) bool {
	return slices.ContainsFunc(s.servers, func(o *server) bool { return o != v && o.rotten && s.roster.newest.IsVoter(o.id) })
}

// oldByte returns the file and the offset of the nth byte of all snapshots and logs; an
// empty path: there are none. It begins again after the last byte.
func (v *server) oldByte(n int64) (path string, off int64) {
	files, all := v.oldFiles()
	if all == 0 {
		return "", 0
	}
	n %= all
	for _, f := range files {
		if n < f.Size {
			return filepath.Join(historyDir, f.Name), n
		}
		n -= f.Size
	}
	return "", 0
}

// historyDir is the directory of the snapshots and logs.
var historyDir = filepath.Join(dataDir, "version-2")

// oldFiles lists the snapshots and logs of a server, and returns how many bytes they have.
func (v *server) oldFiles() (files []store.FileInfo, all int64) {
	files, err := v.fs.ReadDir(historyDir)
	if err != nil {
		return nil, 0
	}
	files = slices.DeleteFunc(files, func(f store.FileInfo) bool {
		return !strings.HasPrefix(f.Name, "snapshot.") && !strings.HasPrefix(f.Name, "log.")
	})
	for _, f := range files {
		all += f.Size
	}
	return files, all
}

// decayed reports whether a start failed because the disk has decayed. If so, the disk is
// replaced as soon as the others can do without it.
func (v *server) decayed(err error) bool {
	var damage *store.DamageError
	switch {
	case !v.rotten:
		return false
	case errors.As(err, &damage):
		v.sim.reach(situationRotRefused)
	case errors.Is(err, errDisk):
		v.sim.reach(situationUnreadable)
	default:
		return false
	}
	v.sim.tell("server %d refuses to start: %v", v.id, err)
	v.fs.Crash(store.KeepAll)
	v.restore()
	v.wipe()
	return true
}

// fellBack records that a server has loaded an older snapshot in place of a decayed one.
func (v *server) fellBack(notes []string) {
	if v.rotten && slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "an older one is used") }) {
		v.sim.reach(situationRotFallback)
		v.installed = v.installed || v.everFuzzy
	}
}

// rot makes disks decay, again and again. Most of the servers that are hit are started
// again soon.
func (n *nemesis) rot(d *machine.Random) {
	n.later(d.Between(500*machine.Millisecond, 6*machine.Second), func() {
		a := Act{Kind: Rot, A: 1 + int(d.Below(int64(len(n.sim.servers)))), Value: d.Between(1, 1<<30)}
		if d.Chance(35) {
			a.Kind = BadSector
		}
		n.sim.Do(a)
		if d.Chance(70) {
			end := []Kind{Kill, PowerOff}[d.Below(2)]
			n.later(d.Below(2*machine.Second), func() {
				n.do(Act{Kind: end, A: a.A}, d.Between(100*machine.Millisecond, 2*machine.Second), Start)
			})
		}
		n.rot(d)
	})
}
