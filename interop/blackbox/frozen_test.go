package blackbox

import (
	"os"
	"strings"
	"sync"
	"testing"

	"bellwether/interop/target"
)

// Disks that hang on demand are mounted outside of the namespaces, as only root of
// the machine may do that (target.Disks). frozenDisks is how many there are;
// disksEnv tells the process inside where, or why there are none.
const (
	frozenDisks = 3
	disksEnv    = "BLACKBOX_DISKS"
)

// Descriptors of the process inside, behind the standard ones.
const (
	askFD    = 3
	answerFD = 4
)

// startDisks makes the disks, before the namespaces are made. The files are for the
// process inside, in the order of the descriptors above; where is what disksEnv
// tells it. end is called when that process has ended.
func startDisks() (files []*os.File, where string, end func()) {
	d, err := target.StartDisks(frozenDisks, "1G")
	if err != nil {
		return nil, "!" + err.Error(), func() {}
	}
	return d.Files(), d.Dir, d.End
}

// disks are for the process inside, one scene at a time.
var disks struct {
	sync.Mutex
	*target.Disks
}

// freezer lets disks hang, for one scene.
type freezer struct{ t testing.TB }

// onDisks puts the data directories of servers on the disks, that of servers[i] on
// disk i, and gives the scene the disks until its end. A machine that cannot have
// them fails the test and says why.
func onDisks(t testing.TB, servers ...int) (f *freezer, before func(*network, []target.Place)) {
	t.Helper()
	dir := os.Getenv(disksEnv)
	if why, none := strings.CutPrefix(dir, "!"); none || dir == "" {
		t.Fatalf("no disks that hang: %s", why)
	}
	return &freezer{t}, func(w *network, places []target.Place) {
		disks.Lock()
		t.Cleanup(disks.Unlock)
		if disks.Disks == nil {
			disks.Disks = target.OpenDisks(dir, os.NewFile(askFD, "ask"), os.NewFile(answerFD, "answers"))
		}
		for i, server := range servers {
			data, err := os.MkdirTemp(disks.Path(i), "server")
			w.must(err)
			t.Cleanup(func() { w.must(os.RemoveAll(data)) })
			places[server].Data = data
		}
	}
}

// freeze lets a disk hang until thaw is called, or the test ends: before its
// servers are killed, which do not end while they wait for it.
func (f *freezer) freeze(disk int) (thaw func()) {
	f.t.Helper()
	if err := disks.Freeze(disk); err != nil {
		f.t.Fatal(err)
	}
	thaw = sync.OnceFunc(func() {
		if err := disks.Thaw(disk); err != nil {
			f.t.Error(err)
		}
	})
	f.t.Cleanup(thaw)
	return thaw
}
