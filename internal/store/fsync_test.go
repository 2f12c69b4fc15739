package store

import (
	"strings"
	"testing"

	"bellwether/internal/record"
	"bellwether/wire"
)

// unsyncedFS records the largest number of bytes of a snapshot that were ever waiting for
// an fsync.
type unsyncedFS struct {
	FS
	most, size int64
}

type unsyncedFile struct {
	File
	fs   *unsyncedFS
	open int64
}

func (f *unsyncedFS) Create(name string) (File, error) {
	file, err := f.FS.Create(name)
	if err != nil || !strings.Contains(name, snapshotPrefix) {
		return file, err
	}
	return &unsyncedFile{File: file, fs: f}, nil
}

func (f *unsyncedFile) WriteAt(b []byte, off int64) (int, error) {
	f.open += int64(len(b))
	f.fs.size += int64(len(b))
	f.fs.most = max(f.fs.most, f.open)
	return f.File.WriteAt(b, off)
}

func (f *unsyncedFile) Sync() error {
	f.open = 0
	return f.File.Sync()
}

// TestSnapshotIsFsyncedAsItGrows: a large snapshot never leaves much unwritten data in
// the page cache, because the fsyncs of the log would wait for it.
func TestSnapshotIsFsyncedAsItGrows(t *testing.T) {
	fs := &unsyncedFS{FS: diskOf(t)}
	s := open(t, fs, dataOptions)
	_, err := s.Load(&recorded{})
	must(t, err)
	_, err = s.WriteSnapshot(0, &copyTree{})
	must(t, err)
	must(t, s.Append([]*record.Txn{{TxnHeader: record.TxnHeader{Zxid: 1, Type: wire.OpError}, Body: &record.ErrorTxn{}}}))
	must(t, s.Sync())
	_, err = s.WriteSnapshot(1, flat(300_000))
	must(t, err)
	if fs.size < 4*fsyncEvery {
		t.Fatalf("the snapshot has only %d bytes", fs.size)
	}
	if fs.most > 2*fsyncEvery {
		t.Errorf("%d of %d bytes were not fsynced at a time", fs.most, fs.size)
	}
}
