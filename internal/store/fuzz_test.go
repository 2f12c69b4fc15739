package store

import (
	"bytes"
	"errors"
	"hash/adler32"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"bellwether/internal/record"
)

// allocated runs f and returns the bytes it allocated.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// FuzzLog: any log file is loaded or refused. If it is loaded, a second load gives the
// same result, and Check agrees.
func FuzzLog(f *testing.F) {
	for _, name := range []string{"log.1", "log.93", "log.96"} {
		b, err := os.ReadFile(filepath.Join(samples, versionDir, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:min(len(b), 2000)])
	}
	f.Add([]byte("ZKLG"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := NewMem(1)
		s := open(t, m, dataOptions)
		_, err := s.InstallSnapshot(0, newWorld())
		must(t, err)
		must(t, s.Close())
		put(t, m, "log.1", b)
		rep, err := Check(m, dataOptions)
		must(t, err)
		first := &recorded{}
		res, err := loadInto(m, dataOptions, first)
		var d *DamageError
		if err != nil && !errors.As(err, &d) {
			t.Fatalf("an error of another kind: %v", err)
		}
		if (err == nil) != (rep.LastZxid >= 0) || err == nil && res.LastZxid != rep.LastZxid {
			t.Fatalf("load: %v %v; check: %v %v", res.LastZxid, err, rep.LastZxid, rep.Damage)
		}
		if err != nil {
			return
		}
		second := &recorded{}
		again, err := loadInto(m, dataOptions, second)
		must(t, err)
		if again.LastZxid != res.LastZxid || len(second.txns) != len(first.txns) {
			t.Fatalf("first %v with %d, then %v with %d", res.LastZxid, len(first.txns), again.LastZxid, len(second.txns))
		}
	})
}

// FuzzSnapshot: any stream is accepted as a snapshot or refused, with memory in
// proportion to its length. An accepted snapshot reads the same after it is written
// again.
func FuzzSnapshot(f *testing.F) {
	for _, name := range []string{"snapshot.0", "snapshot.3c"} {
		b, err := os.ReadFile(filepath.Join(samples, versionDir, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var tree copyTree
		digest, err := DecodeSnapshot(bytes.NewReader(b), 5, &tree)
		var unsound *UnsoundError
		if err != nil {
			if !errors.As(err, &unsound) {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		var out bytes.Buffer
		o := Options{OmitDigest: digest == nil}
		_, err = EncodeSnapshot(&out, 5, &tree, o)
		must(t, err)
		var again copyTree
		if _, err = DecodeSnapshot(&out, 5, &again); err != nil {
			t.Fatalf("written again it is not sound: %v", err)
		}
		if len(again.paths) != len(tree.paths) || len(again.acls) != len(tree.acls) || len(again.sessions) != len(tree.sessions) {
			t.Fatal("written again it is another")
		}
	})
}

// FuzzXerial: reading any compressed stream terminates.
func FuzzXerial(f *testing.F) {
	b, err := os.ReadFile("testdata/snapshots-3.8.0/snapshot.a1.snappy")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := newXerialReader(bytes.NewReader(b))
		if err != nil {
			return
		}
		plain, err := io.ReadAll(io.LimitReader(r, 1<<26))
		if err != nil {
			return
		}
		var out bytes.Buffer
		w := compressTo(&out, Snappy)
		_, err = w.Write(plain)
		must(t, err)
		must(t, w.Close())
		r, err = newXerialReader(&out)
		must(t, err)
		if again, err := io.ReadAll(r); err != nil || !bytes.Equal(again, plain) {
			t.Fatalf("written again it is another: %v", err)
		}
	})
}

// TestClaimsAllocateNothing: a short file that gives large lengths and counts does not
// cause large allocations.
func TestClaimsAllocateNothing(t *testing.T) {
	const most = 1 << 20
	head := "ZKSN\x00\x00\x00\x02\xff\xff\xff\xff\xff\xff\xff\xff"
	for name, stream := range map[string]string{
		"sessions":    head + "\x7f\xff\xff\xff",
		"ACLs":        head + "\x00\x00\x00\x00\x7f\xff\xff\xff",
		"ACL entries": head + "\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x0f\xff\xff",
		"path":        head + "\x00\x00\x00\x00\x00\x00\x00\x00\x03\xff\xff\xff",
		"data":        head + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03\xff\xff\xff",
	} {
		var err error
		n := allocated(func() { _, err = DecodeSnapshot(bytes.NewReader([]byte(stream)), 0, Discard{}) })
		if err == nil || n > most {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
	}
	m, _ := filled(t, 2)
	raw := get(t, m, "log.1")
	long := append(raw, "\x00\x00\x00\x00\x12\x34\x56\x78\x03\x00\x00\x00"...)
	long = append(long, make([]byte, 48<<20)...)
	put(t, m, "log.1", append(long, "Y"...))
	n := allocated(func() {
		for range DumpLog(m, filepath.Join("/data", versionDir, "log.1")) {
		}
	})
	if n > 60<<20 {
		t.Errorf("log: %d bytes", n)
	}
	var err error
	block := xerialMagic + xerialVersions + "\x7f\xff\xff\xff"
	n = allocated(func() {
		var r io.Reader
		if r, err = newXerialReader(bytes.NewReader([]byte(block))); err == nil {
			_, err = io.ReadAll(r)
		}
	})
	if err == nil || n > most {
		t.Errorf("snappy: %d bytes, %v", n, err)
	}
}

// TestSnapshotCutOffAnywhere: a snapshot that is cut off is not sound, unless only
// optional parts are missing: everything after the first seal (then the snapshot has no
// digest), or everything after the second.
func TestSnapshotCutOffAnywhere(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(samples, versionDir, "snapshot.0"))
	must(t, err)
	var out bytes.Buffer
	var tree copyTree
	_, err = DecodeSnapshot(bytes.NewReader(raw), 0, &tree)
	must(t, err)
	_, err = EncodeSnapshot(&out, 0, &tree, Options{})
	must(t, err)
	long := out.Bytes()
	if !bytes.HasPrefix(long, raw) || len(long) != len(raw)+lastZxidBlockLen {
		t.Fatalf("%d bytes with the block of 3.9, %d without", len(long), len(raw))
	}
	for n := range long {
		digest, err := DecodeSnapshot(bytes.NewReader(long[:n]), 0, Discard{})
		firstSeal, secondSeal := len(raw)-digestBlockLen, len(raw)
		switch {
		case n == firstSeal || n == firstSeal+lastZxidBlockLen && err == nil:
			if err != nil || digest != nil {
				t.Errorf("after the first seal: %v, %v", digest, err)
			}
		case n >= secondSeal:
			if err != nil || digest == nil {
				t.Errorf("cut at %d: %v, %v", n, digest, err)
			}
		case err == nil:
			t.Errorf("cut at %d: sound", n)
		}
	}
}

// TestSnapshotTrailers: three forms of the end of a snapshot are read: without a digest
// but with the block of 3.9, with a digest of an old version, and complete.
func TestSnapshotTrailers(t *testing.T) {
	body := func() *snapshotEncoder {
		var out bytes.Buffer
		_, err := EncodeSnapshot(&out, 0, &copyTree{paths: []string{""}, nodes: make([]record.DataNode, 1)}, Options{OmitDigest: true})
		must(t, err)
		h := adler32.New()
		h.Write(out.Bytes())
		return &snapshotEncoder{w: io.Discard, sum: h}
	}
	for name, block := range map[string]func(e *snapshotEncoder){
		"lastZxid alone": func(e *snapshotEncoder) { e.buf = append(e.buf, 0, 0, 0, 0, 0, 0, 0, 9) },
		"old digest": func(e *snapshotEncoder) {
			e.buf = append(e.buf, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1)
			e.text("1a2b")
		},
	} {
		var out bytes.Buffer
		_, err := EncodeSnapshot(&out, 0, &copyTree{paths: []string{""}, nodes: make([]record.DataNode, 1)}, Options{OmitDigest: true})
		must(t, err)
		e := body()
		e.w = &out
		block(e)
		e.seal()
		e.flush()
		digest, err := DecodeSnapshot(&out, 0, Discard{})
		if err != nil || digest != nil {
			t.Errorf("%s: %v, %v", name, digest, err)
		}
	}
}
