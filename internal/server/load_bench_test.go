package server

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"bellwether/internal/record"
	"bellwether/internal/store"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// BenchmarkLoad measures the load of a million znodes of 100 bytes, as a standalone server does it at its
// start: from a log of creates after an empty snapshot, and from a snapshot. Run it with the values that the
// program sets for itself: GOGC=50.
func BenchmarkLoad(b *testing.B) {
	for _, from := range []string{"log", "snapshot"} {
		b.Run(from, func(b *testing.B) {
			o := Options{Config: testConfig(), FS: store.OS()}
			o.Config.DataDir = filepath.Join(b.TempDir(), "data")
			o.Config.DataLogDir = o.Config.DataDir
			fillStore(b, o, 1_000_000, from == "snapshot")
			b.ReportAllocs()
			b.ResetTimer()
			before := processTime()
			for b.Loop() {
				s, err := New(o)
				if err != nil {
					b.Fatal(err)
				}
				if err := s.load(); err != nil {
					b.Fatal(err)
				}
				if n, _ := s.Tree().DigestMismatches(); n != 0 {
					b.Fatal(n, "digests differ")
				}
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((processTime()-before).Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}

// fillStore logs the creates of n znodes, in directories of a thousand, and writes a snapshot before or after
// them.
func fillStore(t testing.TB, o Options, n int, snapshotAfter bool) {
	t.Helper()
	st, err := store.Open(o.FS, storeOptions(o.Config))
	must(t, err)
	tr := tree.New(treeOptions(o.Config, 1))
	_, err = st.Load(tr.Loader())
	must(t, err)
	_, err = st.WriteSnapshot(0, tr.Snapshot())
	must(t, err)
	var batch []*record.Txn
	z := wire.Zxid(0)
	request := func(op wire.OpCode, body []byte) {
		z++
		txn, code := tr.Prepare(&tree.Request{Session: 1, Op: op, Body: body}, z, 1)
		if code != wire.OK {
			t.Fatal(code)
		}
		tr.Replay(txn)
		batch = append(batch, txn)
		if len(batch) == 1000 {
			must(t, st.Append(batch))
			batch = batch[:0]
		}
	}
	create := func(path string, data []byte) {
		request(wire.OpCreate, wire.Append(nil, &wire.CreateRequest{Path: path, Data: data, ACL: wire.OpenACL()}))
	}
	request(wire.OpCreateSession, []byte{0, 0, 1, 0})
	data := make([]byte, 100)
	for i := range n {
		if i%1000 == 0 {
			create(fmt.Sprintf("/%d", i/1000), nil)
		}
		create(fmt.Sprintf("/%d/%d", i/1000, i), data)
	}
	must(t, st.Append(batch))
	must(t, st.Sync())
	if snapshotAfter {
		_, err = st.WriteSnapshot(z, tr.Snapshot())
		must(t, err)
	}
	must(t, st.Close())
}

// processTime returns the processor time of this process.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
