package blackbox

import (
	"os"
	"strings"
	"sync"
	"testing"

	"bellwether/interop/target"
)

// Disks that hang on demand are mounted outside the namespaces, because only root of the machine
// may do that (target.Disks). frozenDisks is their number. disksEnv is the environment variable
// that tells the process inside the namespaces where they are, or why there are none.
const (
	frozenDisks = 3
	disksEnv    = "BLACKBOX_DISKS"
)

// File descriptors of the process inside the namespaces, after the standard ones.
const (
	askFD    = 3
	answerFD = 4
)

// startDisks creates the disks before the namespaces are created. It returns the files for the
// process inside, in the order of the descriptors above, and the value of disksEnv. The caller
// must call end when that process has ended.
func startDisks() (files []*os.File, where string, end func()) {
	d, err := target.StartDisks(frozenDisks, "1G")
	if err != nil {
		return nil, "!" + err.Error(), func() {}
	}
	return d.Files(), d.Dir, d.End
}

// disks are the disks as the process inside sees them, for one scene at a time.
var disks struct {
	sync.Mutex
	*target.Disks
}

// freezer makes disks hang, for one scene.
type freezer struct{ t testing.TB }

// onDisks puts the data directory of servers[i] on disk i and reserves the disks for the scene
// until its end. If there are no disks, the test fails and says why.
func onDisks(t testing.TB, servers ...int) (f *freezer, before func(*network, []target.Place)) {
	t.Helper()
	dir := os.Getenv(disksEnv)
	if why, none := strings.CutPrefix(dir, "!"); none || dir == "" {
		t.Fatalf("disks that hang are not available: %s", why)
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

// freeze makes a disk hang until thaw is called or the test ends. At the end of the test it thaws
// before the servers are killed, because they cannot end while they wait for the disk.
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
