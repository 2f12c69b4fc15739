package store

import (
	"sync/atomic"
	"testing"

	"bellwether/internal/record"
	"bellwether/wire"
)

// TestLoadReadsAboutWhatItSays shows that the bytes that a load reads or skips come close to LoadBytes, so
// that a percentage can be shown.
func TestLoadReadsAboutWhatItSays(t *testing.T) {
	mem := NewMem(1)
	s := open(t, mem, Options{DataDir: "/data"})
	w := newWorld()
	_, err := s.Load(w)
	must(t, err)
	_, err = s.WriteSnapshot(0, w)
	must(t, err)
	for z := wire.Zxid(1); z < 2000; z++ {
		must(t, w.Txn(txn(z, 'r')))
		must(t, s.Append([]*record.Txn{txn(z, 'r')}))
	}
	must(t, s.Sync())
	must(t, s.Close())

	var read atomic.Int64
	s = open(t, CountReads(mem, func(n int64) { read.Add(n) }), Options{DataDir: "/data"})
	total := s.LoadBytes()
	before := read.Load()
	_, err = s.Load(newWorld())
	must(t, err)
	if got := read.Load() - before; total == 0 || got < total/2 || got > 3*total {
		t.Errorf("%d bytes were read, and LoadBytes says %d", got, total)
	}
	must(t, s.Close())
}
