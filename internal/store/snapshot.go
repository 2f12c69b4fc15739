package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"bellwether/wire"
)

// SnapshotFile is a snapshot on disk.
type SnapshotFile struct {
	Path string
	Zxid wire.Zxid
	Size int64 // bytes on disk
}

// WriteSnapshot durably writes src as the snapshot named after zxid. src must contain
// everything up to zxid. All transactions whose effects src contains when it ends must be
// durable in the log, because the log may lose any other. An error leaves the earlier
// snapshots unchanged. It may run concurrently with Append, Sync and Purge, but not with
// itself.
func (s *Store) WriteSnapshot(zxid wire.Zxid, src Source) (SnapshotFile, error) {
	temp, file, err := s.prepareSnapshot(zxid, src, true)
	if err == nil {
		err = s.publish(temp, file)
	}
	if err != nil {
		return SnapshotFile{}, err
	}
	return file, nil
}

// prepareSnapshot durably writes a snapshot under a temporary name. If ours is set, it
// checks that the snapshot contains nothing that the log lacks.
func (s *Store) prepareSnapshot(zxid wire.Zxid, src Source, ours bool) (temp string, file SnapshotFile, err error) {
	if err := s.usable(); err != nil {
		return "", file, err
	}
	if zxid < 0 {
		return "", file, fmt.Errorf("snapshot: no history has the zxid %v", zxid)
	}
	name := snapshotName(zxid, s.opts.Compression)
	temp = filepath.Join(s.snapDir, tempPrefix+name)
	file = SnapshotFile{Path: filepath.Join(s.snapDir, name), Zxid: zxid}
	if file.Size, err = s.writeTemp(temp, zxid, src, ours); err != nil {
		if rm := s.fs.Remove(temp); rm != nil {
			err = fmt.Errorf("%w (and its unfinished file %s cannot be removed: %v)", err, filepath.Base(temp), rm)
		}
		if isFull(err) {
			err = &FullError{File: temp, Zxid: s.Synced(), Err: err}
		}
		return "", file, fmt.Errorf("snapshot %v: %w", zxid, err)
	}
	return temp, file, nil
}

// publish durably renames a snapshot to its final name, and removes snapshots of the same
// zxid with another compression.
func (s *Store) publish(temp string, file SnapshotFile) error {
	if err := s.fs.Rename(temp, file.Path); err != nil {
		return fmt.Errorf("snapshot %v: %w", file.Zxid, err)
	}
	if err := s.fs.SyncDir(s.snapDir); err != nil {
		return fmt.Errorf("snapshot %v: %w", file.Zxid, err)
	}
	if err := s.dirsInPlace(); err != nil {
		return fmt.Errorf("snapshot %v: %w", file.Zxid, s.poison(err))
	}
	if err := s.supersede(file); err != nil {
		return fmt.Errorf("snapshot %v: an older snapshot with the same zxid could not be removed: %w", file.Zxid, err)
	}
	s.mu.Lock()
	first := !s.haveAny
	s.sound[file.Path], s.haveAny = true, true
	s.mu.Unlock()
	if first {
		return s.removeMarker()
	}
	return nil
}

// supersede removes the other snapshots of a file's zxid, durably.
func (s *Store) supersede(file SnapshotFile) error {
	files, _, err := listFiles(s.fs, s.snapDir, snapshotPrefix)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.zxid != file.Zxid || f.path == file.Path {
			continue
		}
		if err := errors.Join(s.fs.Remove(f.path), s.fs.SyncDir(s.snapDir)); err != nil {
			return err
		}
		s.setSound(f.path, false)
	}
	return nil
}

// writeTemp writes the file under its temporary name and makes it durable.
func (s *Store) writeTemp(temp string, zxid wire.Zxid, src Source, ours bool) (size int64, err error) {
	f, err := s.fs.Create(temp)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := &fileWriter{f: f}
	form := compressTo(out, s.opts.Compression)
	from := &digestKeeper{Source: src, zxid: zxid, ours: ours}
	_, err = EncodeSnapshot(form, zxid, from, s.opts)
	if err = errors.Join(err, form.Close()); err != nil {
		return 0, err
	}
	if durable := max(s.Synced(), zxid); from.last > durable || ours && zxid > s.Synced() {
		return 0, fmt.Errorf("the snapshot contains %v, but the log is durable only up to %v", max(zxid, from.last), s.Synced())
	}
	return out.off, f.Sync()
}

// digestKeeper is a source that keeps the zxid of the last call of Digest. A snapshot that
// came from a leader gets a digest that belongs to no transaction: the snapshot can
// contain effects of later transactions, so its real digest is not that of the tree after
// any transaction, and the digests of the next transactions do not match yet.
type digestKeeper struct {
	Source
	zxid wire.Zxid // of the snapshot
	ours bool
	last wire.Zxid
}

// Digest returns the digest of the source, or that of no transaction if the snapshot came from a leader.
func (s *digestKeeper) Digest() (z wire.Zxid, digest uint64) {
	if s.last, digest = s.Source.Digest(); !s.ours {
		return wire.MakeZxid(s.zxid.Epoch(), noTxn), 0
	}
	return s.last, digest
}

// noTxn is a counter that no transaction has: a leader ends its epoch before it. ZooKeeper compares no digest
// before it has replayed the transaction of the digest block. With an empty block, as its own servers write after
// a SNAP, it compares at once and counts mismatches of transactions whose effects the snapshot contains already.
const noTxn = 0xffffffff

// ofNoTxn reports whether d says that a snapshot came from a leader.
func ofNoTxn(d *SnapshotDigest) bool { return d.Zxid.Counter() == noTxn && d.Tree == 0 }

// fsyncEvery is the number of bytes of a snapshot after which its file is fsynced.
// Otherwise the next fsync of the log would wait until the disk has written everything
// that the snapshot left in the page cache. With 250 MB that took 135 ms; with 8 MiB the
// longest fsync took 11 to 56 ms, with this limit 9 to 10 ms.
const fsyncEvery = 1 << 20

// fileWriter writes a File from front to back.
type fileWriter struct {
	f       File
	off     int64
	durable int64 // number of bytes that an fsync has covered
}

func (w *fileWriter) Write(b []byte) (int, error) {
	n, err := w.f.WriteAt(b, w.off)
	if w.off += int64(n); err != nil || w.off-w.durable < fsyncEvery {
		return n, err
	}
	w.durable = w.off
	return n, w.f.Sync()
}

// readSnapshot reads a snapshot file into sink. An [*UnsoundError] says that the file is
// bad; any other error comes from the file system.
func readSnapshot(fs FS, file fileName, sink Sink) (c contents, err error) {
	f, err := openHistory(fs, file.path)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return c, err
	}
	r, err := decompress(io.NewSectionReader(f, 0, size), file.form)
	if err != nil {
		return c, &UnsoundError{What: "it cannot be decompressed", Short: isShort(err), Err: err}
	}
	return decodeSnapshot(r, file.zxid, sink)
}

// openHistory opens a log or a snapshot for reading.
func openHistory(fsys FS, path string) (File, error) {
	f, err := fsys.Open(path)
	if errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w; allow the user of the server to read it", err)
	}
	return f, err
}

func isShort(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// InstallSnapshot replaces the history by src, which a leader sent and which contains
// everything up to zxid and nothing above. It durably writes src as the snapshot of zxid
// and sets aside every record and snapshot above zxid. It must not run concurrently with
// any other call. The caller need not call Load if the server's tree is src already. An
// error before the snapshot has its name changes nothing. A later error is a
// [*PoisonedError]: if the old log continued, the next start would ignore it because of
// the snapshot.
func (s *Store) InstallSnapshot(zxid wire.Zxid, src Source) (SnapshotFile, error) {
	if err := s.Roll(); err != nil {
		return SnapshotFile{}, err
	}
	temp, file, err := s.prepareSnapshot(zxid, src, false)
	if err != nil {
		return SnapshotFile{}, err
	}
	if err := s.publish(temp, file); err != nil {
		return SnapshotFile{}, s.poison(err)
	}
	if err := s.beginCut(zxid); err != nil {
		return SnapshotFile{}, s.poison(err)
	}
	if err := s.cut(zxid); err != nil {
		return SnapshotFile{}, s.poison(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded = true
	s.last, s.synced = zxid, zxid
	return file, nil
}
