package store

import (
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strings"

	"bellwether/internal/record"
	"bellwether/wire"
)

// LogEntry is a record of a log file, as it is stored.
type LogEntry struct {
	Offset int64 // offset of its checksum
	End    int64 // offset after the end byte of the record
	Sum    uint32
	Txn    *record.Txn
}

// DumpLog yields the records of one log file, whatever its name is. If a record cannot be
// read, a [*DamageError] is yielded last. An unfinished end that a crash can have left is
// no error.
func DumpLog(fs FS, path string) iter.Seq2[LogEntry, error] {
	return func(yield func(LogEntry, error) bool) {
		if err := dumpLog(fs, path, yield); err != nil && !errors.Is(err, errFound) {
			yield(LogEntry{}, err)
		}
	}
}

func dumpLog(fs FS, path string, yield func(LogEntry, error) bool) (err error) {
	s, err := openLog(fs, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	var decoder record.TxnDecoder
	v, err := s.header()
	for err == nil && v.ending == endNone {
		var rec logRecord
		if rec, v, err = s.next(); err != nil || v.ending != endNone {
			break
		}
		t, err := rec.decode(&decoder)
		if err != nil {
			return damageAt(path, rec.off, err.Error())
		}
		if !yield(LogEntry{rec.off, rec.end, rec.sum, t}, nil) {
			return errFound
		}
	}
	if err == nil && v.ending == endDamaged {
		return damageAt(path, v.off, v.what)
	}
	return err
}

// DumpSnapshot reads one snapshot file into sink, which may be an [Offsetter]. The
// extension of the name tells how the file is compressed. If the file is bad, the error
// is an [*UnsoundError].
func DumpSnapshot(fs FS, path string, sink Sink) error {
	file := fileName{path: path}
	file.zxid, _ = looseZxid(filepath.Base(path))
	switch ext := Compression(strings.TrimPrefix(filepath.Ext(path), ".")); ext {
	case Gzip, Snappy:
		file.form = ext
	}
	if _, err := readSnapshot(fs, file, sink); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// LogFile is a transaction log on disk.
type LogFile struct {
	Path  string
	First wire.Zxid // no record in it has an earlier zxid
	Size  int64     // bytes on disk, reserved space included
}

// Logs lists the transaction logs of a log directory, the oldest first.
func Logs(fs FS, logDir string) ([]LogFile, error) {
	files, _, err := listFiles(fs, filepath.Join(logDir, versionDir), logPrefix)
	if err != nil {
		return nil, err
	}
	logs := make([]LogFile, 0, len(files))
	for _, f := range files {
		logs = append(logs, LogFile{Path: f.path, First: f.zxid, Size: f.size})
	}
	return logs, nil
}
