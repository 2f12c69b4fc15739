package store

import "path/filepath"

// Files returns the patterns of the snapshots and logs in the directories of o, for filepath.Glob.
func (o Options) Files() []string {
	logs := o.LogDir
	if logs == "" {
		logs = o.DataDir
	}
	return []string{filepath.Join(o.DataDir, versionDir, snapshotPrefix+"*"), filepath.Join(logs, versionDir, logPrefix+"*")}
}

// CountReads returns a file system that passes all calls to fs and reports how many bytes of files were
// read, or skipped because they were never written. The function may be called by several goroutines.
func CountReads(fs FS, read func(bytes int64)) FS { return &countingFS{fs, read} }

type countingFS struct {
	FS
	read func(int64)
}

type countingFile struct {
	File
	read func(int64)
}

func (f *countingFS) Open(name string) (File, error) {
	file, err := f.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return &countingFile{file, f.read}, nil
}

func (f *countingFile) ReadAt(b []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(b, off)
	f.read(int64(n))
	return n, err
}

// nextData calls nextData of the file, if the file has that method.
func (f *countingFile) nextData(off int64) int64 {
	h, ok := f.File.(holeFinder)
	if !ok {
		return off
	}
	next := h.nextData(off)
	f.read(max(next-off, 0))
	return next
}

// LoadBytes returns about how many bytes Load is going to read: the newest snapshot, and the
// logs from the one before it.
func (s *Store) LoadBytes() int64 {
	snapshots, _, err := listFiles(s.fs, s.snapDir, snapshotPrefix)
	if err != nil {
		return 0
	}
	logs, _, err := listFiles(s.fs, s.logDir, logPrefix)
	if err != nil {
		return 0
	}
	var files []fileName
	if n := len(snapshots); n > 0 {
		files = append(files, snapshots[n-1])
		for len(logs) > 1 && logs[1].zxid <= snapshots[n-1].zxid {
			logs = logs[1:]
		}
	}
	total := int64(0)
	for _, f := range append(files, logs...) {
		total += f.size
	}
	return total
}
