package store

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"bellwether/wire"
)

// SnapshotFile is a snapshot on disk.
type SnapshotFile struct {
	Path string
	Zxid wire.Zxid
	Size int64 // bytes on disk
}

// WriteSnapshot writes src, durably, as the snapshot named after zxid, which
// must be one that src certainly contains. What src contains when it ends
// must be synced in the log: a snapshot must not know what the log may lose.
// An error leaves the earlier snapshots as they were. May run beside
// Append, Sync and Purge, not beside itself.
func (s *Store) WriteSnapshot(zxid wire.Zxid, src Source) (SnapshotFile, error) {
	return s.writeSnapshot(zxid, src, true)
}

func (s *Store) writeSnapshot(zxid wire.Zxid, src Source, ours bool) (SnapshotFile, error) {
	if err := s.usable(); err != nil {
		return SnapshotFile{}, err
	}
	if zxid < 0 {
		return SnapshotFile{}, fmt.Errorf("snapshot: no history has the zxid %v", zxid)
	}
	temp := filepath.Join(s.snapDir, tempPrefix+snapshotName(zxid, s.opts.Compression))
	file := SnapshotFile{Path: filepath.Join(s.snapDir, snapshotName(zxid, s.opts.Compression)), Zxid: zxid}
	var err error
	if file.Size, err = s.writeTemp(temp, zxid, src, ours); err != nil {
		if rm := s.fs.Remove(temp); rm != nil {
			err = fmt.Errorf("%w (and it stays behind as %s: %v)", err, filepath.Base(temp), rm)
		}
		if isFull(err) {
			err = &FullError{File: temp, Zxid: s.Synced(), Err: err}
		}
		return SnapshotFile{}, fmt.Errorf("snapshot %v: %w", zxid, err)
	}
	if err := s.fs.Rename(temp, file.Path); err != nil {
		return SnapshotFile{}, fmt.Errorf("snapshot %v: %w", zxid, err)
	}
	if err := s.fs.SyncDir(s.snapDir); err != nil {
		return SnapshotFile{}, fmt.Errorf("snapshot %v: %w", zxid, err)
	}
	s.mu.Lock()
	first := !s.haveAny
	s.sound[file.Path], s.haveAny = true, true
	s.mu.Unlock()
	if first {
		return file, s.removeMarker()
	}
	return file, nil
}

// writeTemp writes and syncs the file under its temporary name.
func (s *Store) writeTemp(temp string, zxid wire.Zxid, src Source, ours bool) (size int64, err error) {
	f, err := s.fs.Create(temp)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := &fileWriter{f: f}
	form := compressTo(out, s.opts.Compression)
	digest, err := EncodeSnapshot(form, zxid, src, s.opts)
	if err = errors.Join(err, form.Close()); err != nil {
		return 0, err
	}
	if durable := max(s.Synced(), zxid); digest.Zxid > durable || ours && zxid > s.Synced() {
		return 0, fmt.Errorf("it contains %v and the log is durable only up to %v", max(zxid, digest.Zxid), s.Synced())
	}
	return out.off, f.Sync()
}

// fileWriter writes a File from front to back.
type fileWriter struct {
	f   File
	off int64
}

func (w *fileWriter) Write(b []byte) (int, error) {
	n, err := w.f.WriteAt(b, w.off)
	w.off += int64(n)
	return n, err
}

// readSnapshot reads a snapshot file into sink. An [*UnsoundError] says that
// the file is at fault; any other error comes from the file system.
func readSnapshot(fs FS, file fileName, sink Sink) (digest *SnapshotDigest, err error) {
	f, err := fs.Open(file.path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	r, err := decompress(io.NewSectionReader(f, 0, size), file.form)
	if err != nil {
		return nil, &UnsoundError{What: "it cannot be decompressed", Short: isShort(err), Err: err}
	}
	digest, err = DecodeSnapshot(r, file.zxid, sink)
	return digest, err
}

func isShort(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// InstallSnapshot replaces the history by src, which a leader sent and which
// contains everything up to zxid and nothing above: it writes src as the
// snapshot of zxid and takes every record and snapshot above zxid out of use,
// durably. Not beside any other call. Load need not follow where src is
// already the tree.
func (s *Store) InstallSnapshot(zxid wire.Zxid, src Source) (SnapshotFile, error) {
	if err := s.Roll(); err != nil {
		return SnapshotFile{}, err
	}
	file, err := s.writeSnapshot(zxid, src, false)
	if err != nil {
		return file, err
	}
	if err := s.beginCut(zxid); err != nil {
		return file, err
	}
	if err := s.cut(zxid); err != nil {
		return file, s.poison(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded = true
	s.last, s.synced = zxid, zxid
	return file, nil
}
