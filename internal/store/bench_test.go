package store

import (
	"bytes"
	"fmt"
	"testing"

	"bellwether/internal/record"
	"bellwether/wire"
)

// flat is a source of n znodes of 100 bytes.
type flat int

func (flat) Sessions(func(wire.SessionID, int32) error) error { return nil }

func (flat) ACLs(yield func(int64, []wire.ACL) error) error { return yield(1, wire.OpenACL()) }

func (f flat) Nodes(yield func(string, *record.DataNode) error) error {
	n := record.DataNode{ACL: -1}
	if err := yield("", &n); err != nil {
		return err
	}
	n.Data = make([]byte, 100)
	for i := range int(f) {
		if err := yield(fmt.Sprintf("/node-%010d", i), &n); err != nil {
			return err
		}
	}
	return nil
}

func (flat) Digest() (wire.Zxid, uint64) { return 1, 1 }

func BenchmarkEncodeSnapshot(b *testing.B) {
	var out bytes.Buffer
	for b.Loop() {
		out.Reset()
		if _, err := EncodeSnapshot(&out, 1, flat(100000), Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(out.Len()))
}

func BenchmarkDecodeSnapshot(b *testing.B) {
	var out bytes.Buffer
	if _, err := EncodeSnapshot(&out, 1, flat(100000), Options{}); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(out.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeSnapshot(bytes.NewReader(out.Bytes()), 1, Discard{}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestSnapshotDecodesWithLittleMemory: the decoder allocates the path of each znode and nothing else for it.
func TestSnapshotDecodesWithLittleMemory(t *testing.T) {
	const n = 1000
	var out bytes.Buffer
	_, err := EncodeSnapshot(&out, 1, flat(n), Options{})
	must(t, err)
	if got := testing.AllocsPerRun(10, func() {
		_, err := DecodeSnapshot(bytes.NewReader(out.Bytes()), 1, Discard{})
		must(t, err)
	}); got > n+50 {
		t.Errorf("%v allocations for %d znodes", got, n)
	}
}

// BenchmarkAppendSync appends a batch of 64 small transactions and fsyncs it, on the real
// file system.
func BenchmarkAppendSync(b *testing.B) {
	for _, noSync := range []bool{false, true} {
		b.Run(fmt.Sprintf("nosync=%v", noSync), func(b *testing.B) {
			s := open(b, OS(), Options{DataDir: b.TempDir(), NoSync: noSync})
			_, err := s.Load(newWorld())
			must(b, err)
			_, err = s.WriteSnapshot(0, newWorld())
			must(b, err)
			batch := make([]*record.Txn, 64)
			z := wire.Zxid(0)
			for i := range batch {
				batch[i] = txn(6, 'b')
			}
			b.ReportAllocs()
			for b.Loop() {
				for _, t := range batch {
					z++
					t.Zxid = z
				}
				must(b, s.Append(batch))
				must(b, s.Sync())
			}
			must(b, s.Close())
		})
	}
}

// BenchmarkOpenManyLogs opens a directory with 200 logs of 1,000 transactions, on the real file system.
func BenchmarkOpenManyLogs(b *testing.B) {
	opts := Options{DataDir: b.TempDir(), NoSync: true}
	s := open(b, OS(), opts)
	_, err := s.Load(newWorld())
	must(b, err)
	_, err = s.WriteSnapshot(0, newWorld())
	must(b, err)
	for z := wire.Zxid(0); z < 200*1000; {
		batch := make([]*record.Txn, 1000)
		for i := range batch {
			z++
			batch[i] = txn(z, 'b')
		}
		must(b, s.Append(batch))
		must(b, s.Sync())
		must(b, s.Roll())
	}
	must(b, s.Close())
	for b.Loop() {
		must(b, open(b, OS(), opts).Close())
	}
}
