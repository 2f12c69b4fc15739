package sim

import (
	"path/filepath"
	"strings"
	"testing"

	"bellwether/internal/sim/machine"
)

// aged returns an ensemble of three whose disks hold several snapshots and logs, and a
// follower of it that has ended.
func aged(t *testing.T, seed uint64) (*scene, *server) {
	s := newScene(t, Options{Seed: seed, Voters: 3})
	for _, v := range s.servers {
		v.snapEvery = 15
	}
	s.write(s.leader(), 70)
	s.until("all have the writes", 5*machine.Second, func() bool { return s.allEqual() == "" })
	s.RunFor(machine.Second)
	v := s.other()
	s.Do(Act{Kind: Kill, A: int(v.id)})
	return s, v
}

// amount returns the amount of an act that hits a byte of the newest file whose name begins
// with a prefix.
func (s *scene) amount(v *server, prefix string, part float64) int64 {
	s.t.Helper()
	files, _ := v.oldFiles()
	at, found := int64(0), int64(-1)
	for _, f := range files {
		if strings.HasPrefix(f.Name, prefix) && f.Size > 0 {
			found = at + int64(part*float64(f.Size-1))
		}
		at += f.Size
	}
	if found < 0 {
		s.t.Fatalf("there is no %s", prefix)
	}
	return max(1, found*8)
}

// rottenSnapshot flips a bit of the newest snapshot of a follower.
func rottenSnapshot(t *testing.T, seed uint64) *scene {
	s, v := aged(t, seed)
	s.Do(Act{Kind: Rot, A: int(v.id), Value: s.amount(v, "snapshot.", 0.6)})
	s.whole()
	return s
}

// rottenLog flips a bit of the newest log of a follower.
func rottenLog(t *testing.T, seed uint64) *scene {
	s, v := aged(t, seed)
	s.Do(Act{Kind: Rot, A: int(v.id), Value: s.amount(v, "log.", 0.5)})
	s.whole()
	return s
}

// spoiltFile makes a sector of the newest log of a follower unreadable.
func spoiltFile(t *testing.T, seed uint64) *scene {
	s, v := aged(t, seed)
	s.Do(Act{Kind: BadSector, A: int(v.id), Value: s.amount(v, "log.", 0.5)})
	s.whole()
	return s
}

// rottenLogOfALeader flips a bit in each log of a leader that has started lately, so that
// only its disk has what a follower needs that was away for long.
func rottenLogOfALeader(t *testing.T, seed uint64) *scene {
	s := newScene(t, Options{Seed: seed, Voters: 3})
	for _, v := range s.servers {
		v.snapEvery = 15
	}
	v := s.other()
	s.write(s.leader(), 5)
	s.until("all have the writes", 5*machine.Second, func() bool { return s.allEqual() == "" })
	s.Do(Act{Kind: Kill, A: int(v.id)})
	s.write(s.leader(), 70)
	s.RunFor(machine.Second)
	for _, o := range s.without(v) {
		s.Do(Act{Kind: Kill, A: int(o.id)})
		s.Do(Act{Kind: Start, A: int(o.id)})
	}
	s.until("another term serves", 10*machine.Second, func() bool { return s.leader() != nil })
	l, at := s.leader(), int64(0)
	files, _ := l.oldFiles()
	for _, f := range files {
		if strings.HasPrefix(f.Name, "log.") {
			s.Do(Act{Kind: Rot, A: int(l.id), Value: (at + f.Size/2) * 8})
		}
		at += f.Size
	}
	s.whole()
	return s
}

// TestDecayIsFound checks, for a decayed byte at many places, that the server falls back to
// an older snapshot or refuses the start and gets a new disk, and that it then serves the
// same tree as the others.
func TestDecayIsFound(t *testing.T) {
	for _, kind := range []Kind{Rot, BadSector} {
		fallbacks, refusals := 0, 0
		for i := range 40 {
			s, v := aged(t, uint64(i+1))
			_, all := v.oldFiles()
			s.Do(Act{Kind: kind, A: int(v.id), Value: max(1, all*int64(i)/40*8+int64(i%8))})
			if !v.rotten {
				t.Fatalf("%s %d: nothing decays", kind, i)
			}
			s.whole()
			s.write(s.leader(), 2)
			fallbacks += s.reached[situationRotFallback]
			refusals += s.reached[situationRotRefused] + s.reached[situationUnreadable]
		}
		if refusals == 0 || kind == Rot && fallbacks == 0 {
			t.Errorf("%s: %d fallbacks, %d refusals", kind, fallbacks, refusals)
		}
	}
}

// TestDiskDecaysOnlyIfOthersCanDoWithoutIt checks that no two of three disks decay, and that
// a server with a decayed disk does not count among those that others rely on.
func TestDiskDecaysOnlyIfOthersCanDoWithoutIt(t *testing.T) {
	s, v := aged(t, 1)
	others := s.without(v)
	for _, o := range append([]*server{v}, others...) {
		s.Do(Act{Kind: Rot, A: int(o.id), Value: s.amount(o, "log.", 0.5)})
	}
	if !v.rotten || others[0].rotten || others[1].rotten {
		t.Errorf("decayed: %v, %v, %v", v.rotten, others[0].rotten, others[1].rotten)
	}
	s.Do(Act{Kind: Kill, A: int(others[0].id)})
	s.Do(Act{Kind: Wipe, A: int(others[0].id)})
	if others[0].blank {
		t.Error("the disk of a server was replaced although only a server with a decayed disk and one other have the history")
	}
	s.whole()
}

// TestDecayedServerCountsOnceFaultsEnded: the disks of two of four voters have decayed (there were more voters when the first one
// did), and one of the two refuses to start. While faults go on, its disk is not replaced, because the other one may refuse to start
// later. Once they have ended, its disk is replaced if the other one is up. Found by seed 1796050955271248183 with --careless 1.
func TestDecayedServerCountsOnceFaultsEnded(t *testing.T) {
	s := newScene(t, Options{Voters: 4})
	a, b := s.leader(), s.other()
	a.rotten, b.rotten = true, true
	b.kill()
	for _, test := range []struct{ calm, up, want bool }{{false, true, false}, {true, true, true}, {true, false, false}} {
		if s.calm = test.calm; !test.up {
			a.kill()
		}
		if got := b.expendable(); got != test.want {
			t.Errorf("faults ended %v, other server up %v: expendable %v", test.calm, test.up, got)
		}
	}
}

// TestDecayOfHistoryDirOnly checks that only snapshots and logs decay: nothing protects the
// number in an epoch file.
func TestDecayOfHistoryDirOnly(t *testing.T) {
	s, v := aged(t, 1)
	files, all := v.oldFiles()
	if len(files) < 4 {
		t.Errorf("%d files", len(files))
	}
	seen := map[string]bool{}
	for n := range all {
		path, _ := v.oldByte(n)
		seen[filepath.Base(path)] = true
	}
	if len(seen) != len(files) {
		t.Errorf("%v of %v", seen, files)
	}
	for name := range seen {
		if !strings.HasPrefix(name, "log.") && !strings.HasPrefix(name, "snapshot.") {
			t.Errorf("%s decays", name)
		}
	}
	s.whole()
}
