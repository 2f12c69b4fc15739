package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"

	"bellwether/wire"
)

// Options says where a store is and how it writes. The zero value of each field is the
// default; only DataDir must be set.
type Options struct {
	DataDir string // holds version-2 with the snapshots and epochs
	LogDir  string // holds version-2 with the logs; empty: DataDir

	// PreallocBytes is how much space a log reserves ahead of its records (preAllocSize);
	// 0: 64 MiB, negative: none.
	PreallocBytes int64
	// NoSync leaves it to the system when the log is written to the disk (forceSync=no).
	// Then a power failure loses acknowledged writes.
	NoSync bool
	// Compression is the compression of new snapshots. Snapshots with any compression can
	// be read.
	Compression Compression
	// OmitDigest leaves the digest block out of snapshots (digest.enabled=false).
	OmitDigest bool
	// OmitLastZxid leaves out the block that 3.9 added
	// (serializeLastProcessedZxid.enabled=false). OmitDigest implies it.
	OmitLastZxid bool
	// TrustEmpty allows logs without any snapshot (snapshot.trust.empty).
	TrustEmpty bool
	// NoDirCreate refuses to create missing directories
	// (zookeeper.datadir.autocreate=false).
	NoDirCreate bool
	// NoDBCreate refuses to start an empty history without the marker file named
	// initialize (zookeeper.db.autocreate=false).
	NoDBCreate bool
}

// Compression is how snapshots are compressed.
type Compression string

// The compressions, as snapshot.compression.method names them.
const (
	Plain  Compression = ""
	Gzip   Compression = "gz"
	Snappy Compression = "snappy"
)

// Store is a server's history on disk. The package comment says which calls may run
// concurrently.
type Store struct {
	fs      FS
	opts    Options
	snapDir string
	logDir  string
	locks   []io.Closer
	opened  []string // notes about what Open has repaired
	made    []string // the version-2 directories that Open made

	log    logWriter
	places []place // the version-2 directories, as Open found them
	epochs Epochs  // the epochs that were last saved
	ahead  ahead

	mu      sync.Mutex // guards the fields below; never held during I/O
	failed  error      // the error that poisoned the store
	loaded  bool
	last    wire.Zxid
	synced  wire.Zxid
	sound   map[string]bool // paths of snapshots that are known to be sound and durable
	haveAny bool            // there is a snapshot
}

// Open locks the directories, creates what is missing and removes what an interrupted
// write has left. Its error is a [*BusyError] if another process uses the directories,
// and a [*LayoutError] if they are not fit for use.
func Open(fs FS, o Options) (*Store, error) {
	if o.LogDir == "" {
		o.LogDir = o.DataDir
	}
	s := &Store{
		fs:      fs,
		opts:    o,
		snapDir: filepath.Join(o.DataDir, versionDir),
		logDir:  filepath.Join(o.LogDir, versionDir),
		sound:   map[string]bool{},
		last:    -1,
		synced:  -1,
	}
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.unlock())
	}
	return s, nil
}

func (s *Store) open() error {
	for _, dir := range s.dirs() {
		if err := s.makeDir(dir); err != nil {
			return err
		}
	}
	if len(s.dirs()) == 2 && sameDir(s.fs, s.snapDir, s.logDir) {
		s.logDir = s.snapDir
	}
	for _, dir := range s.dirs() {
		lock, err := s.fs.Lock(dir)
		if err != nil {
			return err
		}
		s.locks = append(s.locks, lock)
	}
	var err error
	if s.places, err = placesOf(s.fs, s.dirs()); err != nil {
		return err
	}
	if err := checkSplit(s.fs, s.snapDir, s.logDir); err != nil {
		return err
	}
	for _, dir := range s.dirs() {
		if err := s.removeUnfinished(dir); err != nil {
			return err
		}
	}
	if err := s.rename(); err != nil {
		return err
	}
	return s.finishCut()
}

// dirs returns the version-2 directories; one if they are the same.
func (s *Store) dirs() []string {
	if s.snapDir == s.logDir {
		return []string{s.snapDir}
	}
	return []string{s.snapDir, s.logDir}
}

// makeDir creates a directory, or makes the name of an existing one durable: a file is
// durable only if the name of its directory is.
func (s *Store) makeDir(dir string) error {
	info, err := s.fs.Stat(dir)
	switch {
	case err == nil && !info.Dir:
		return &LayoutError{dir, "is a file", "move it away"}
	case errors.Is(err, fs.ErrNotExist) && s.opts.NoDirCreate:
		return &LayoutError{dir, "is missing, and zookeeper.datadir.autocreate is false", "create the directory, or set the key to true"}
	}
	if mkErr := s.fs.MkdirAll(dir); mkErr != nil {
		return fmt.Errorf("data directory %s cannot be created: %w; choose one that this user can write", dir, mkErr)
	}
	if errors.Is(err, fs.ErrNotExist) {
		s.made = append(s.made, dir)
	}
	return nil
}

// sameDir reports whether two names lead to one directory.
func sameDir(fs FS, a, b string) bool {
	x, err := fs.Stat(a)
	if err != nil {
		return false
	}
	y, err := fs.Stat(b)
	return err == nil && x.SameFile(y)
}

// checkSplit checks separate directories for snapshots and logs. As in ZooKeeper, they
// are refused if one contains files that belong in the other, because then somebody has
// moved only a part of the files.
func checkSplit(fs FS, snapDir, logDir string) error {
	if snapDir == logDir {
		return nil
	}
	for _, part := range []struct{ dir, foreign, home string }{
		{logDir, snapshotPrefix, snapDir},
		{snapDir, logPrefix, logDir},
	} {
		entries, err := fs.ReadDir(part.dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Not == "" && strings.HasPrefix(e.Name, part.foreign) {
				return &LayoutError{part.dir, "holds " + e.Name, "move every file named " + part.foreign + "* to " + part.home}
			}
		}
	}
	return nil
}

// removeUnfinished removes unfinished files, and sets aside unfinished snapshots of
// ZooKeeper, which ZooKeeper would later read.
func (s *Store) removeUnfinished(dir string) error {
	entries, err := s.fs.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name)
		whole, isTemp := strings.CutSuffix(e.Name, ".tmp")
		_, _, isSnapshot := parseName(whole, snapshotPrefix, true)
		switch {
		case e.Not != "":
		case strings.HasPrefix(e.Name, tempPrefix):
			err = s.fs.Remove(path)
		case isTemp && isSnapshot:
			var to string
			if to, err = setAside(s.fs, path); err == nil {
				s.opened = append(s.opened, fmt.Sprintf("%s was never finished; set aside as %s", path, filepath.Base(to)))
			}
		}
		if err != nil {
			return fmt.Errorf("tidy up: %w", err)
		}
	}
	return nil
}

// Close makes the log durable and closes it, unless the store is poisoned, and unlocks
// the directories.
func (s *Store) Close() error {
	err := s.usable()
	if err == nil {
		err = s.Roll()
	}
	if s.log.f != nil {
		err = errors.Join(err, s.log.close())
	}
	return errors.Join(err, s.removeAhead(), s.unlock())
}

func (s *Store) unlock() error {
	var err error
	for _, lock := range s.locks {
		err = errors.Join(err, lock.Close())
	}
	s.locks = nil
	return err
}

// poison records that the content of the disk is not known any more, which ends all use
// of the log.
func (s *Store) poison(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = &PoisonedError{err}
	}
	return s.failed
}

// usable returns the error that poisoned the store, nil if none did.
func (s *Store) usable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// LastZxid returns the last transaction appended, or the snapshot's zxid if that is
// later; -1 before Load.
func (s *Store) LastZxid() wire.Zxid {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// Synced returns the last transaction known to be durable; -1 before Load.
func (s *Store) Synced() wire.Zxid {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.synced
}

// Sizes are the bytes in the two directories, as the commands conf and dirs print them.
type Sizes struct {
	Snapshots int64
	Logs      int64
}

// Sizes adds up the lengths of the files. It may run concurrently with every call.
func (s *Store) Sizes() (Sizes, error) {
	var z Sizes
	for dir, sum := range map[string]*int64{s.snapDir: &z.Snapshots, s.logDir: &z.Logs} {
		entries, err := s.fs.ReadDir(dir)
		if err != nil {
			return z, err
		}
		for _, e := range entries {
			if e.Not == "" {
				*sum += e.Size
			}
		}
	}
	if s.snapDir == s.logDir {
		z.Snapshots = z.Logs
	}
	return z, nil
}
