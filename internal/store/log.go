package store

import (
	"errors"
	"fmt"
	"path/filepath"

	"bellwether/internal/record"
	"bellwether/wire"
)

// preallocDefault is how much space a log reserves ahead, in bytes.
const preallocDefault = 64 << 20

// preallocSlack is how near to the end of the reserved space, in bytes, the next space is
// reserved.
const preallocSlack = 4096

// logWriter is the log that is being written: buf goes to offset pos of f. It belongs to
// the goroutine that calls Append and Sync.
type logWriter struct {
	f       File // nil: the next Append begins a log
	path    string
	found   FileInfo // the file at path when it was created; if path leads to another one later, it was replaced
	buf     []byte   // encoded, not yet written
	pos     int64
	synced  int64 // durable up to this offset
	length  int64 // length of the file, with the reserved space
	newName bool  // the name is not durable yet
	sparse  bool  // there is no space to reserve
	coder   wire.Coder
}

func (w *logWriter) close() error {
	err := w.f.Close()
	*w = logWriter{buf: w.buf[:0], coder: w.coder}
	return err
}

// Append writes txns at the end of the log. They must follow each other and the last one without a gap. They
// are durable after the next Sync. Append itself calls fsync before a record with which more than syncMax bytes
// would not be durable. If there is no space, the error is a [*FullError]. A transaction that does not follow,
// or whose body is not of its type, is refused, and with it all of txns; nothing is written. Every other error
// is a [*PoisonedError].
func (s *Store) Append(txns []*record.Txn) error {
	if err := s.appendable(txns); err != nil {
		return err
	}
	for _, t := range txns {
		if err := s.append(t); err != nil {
			return err
		}
		s.mu.Lock()
		s.last = t.Zxid
		s.mu.Unlock()
	}
	return nil
}

// appendable checks all transactions before anything is written, because neither this
// server nor ZooKeeper could open a log with a gap or with a body of the wrong type.
func (s *Store) appendable(txns []*record.Txn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.failed != nil:
		return s.failed
	case !s.loaded:
		return errors.New("append: the history was not loaded")
	case !s.haveAny:
		return errors.New("append: a log needs a snapshot before it; write one first")
	}
	last := s.last
	for _, t := range txns {
		if !record.Follows(last, t.Zxid) {
			return fmt.Errorf("append: transaction %v does not follow %v", t.Zxid, last)
		}
		if !t.Fits() {
			return fmt.Errorf("append: transaction %v is a %v but has a body of type %T", t.Zxid, t.Type, t.Body)
		}
		last = t.Zxid
	}
	return nil
}

func (s *Store) append(t *record.Txn) error {
	w := &s.log
	if w.f == nil {
		if err := s.begin(t.Zxid); err != nil {
			return err
		}
	}
	before := len(w.buf)
	buf, err := appendRecord(&w.coder, w.buf, t)
	if err != nil {
		return s.poison(err) // earlier transactions of the batch may be on disk
	}
	w.buf = buf
	if w.pos+int64(len(buf))-w.synced <= syncMax || w.pos+int64(before) == w.synced {
		return nil
	}
	// A torn write never spans more than syncMax: fsync what is before this record.
	rest := append([]byte(nil), buf[before:]...)
	w.buf = buf[:before]
	if err := s.Sync(); err != nil {
		return err
	}
	w.buf = append(w.buf, rest...)
	return nil
}

// begin creates the log whose first transaction is z.
func (s *Store) begin(z wire.Zxid) error {
	w := &s.log
	if err := s.dirsInPlace(); err != nil {
		return s.poison(err)
	}
	w.path = filepath.Join(s.logDir, logName(z))
	if _, err := s.fs.Stat(w.path); err == nil {
		if _, err := setAside(s.fs, w.path); err != nil {
			return s.poison(err)
		}
	}
	f, err := s.fs.Create(w.path)
	if isFull(err) {
		return s.full(err)
	}
	if err != nil {
		return s.poison(err)
	}
	w.f, w.newName = f, true
	w.length = logHeaderLen
	w.buf = appendLogHeader(w.buf[:0])
	if w.found, err = s.fs.Stat(w.path); err != nil {
		return s.poison(fmt.Errorf("begin %s: %w", w.path, err))
	}
	return nil
}

// Sync makes everything appended durable, under the names by which the next start finds
// it (see [Store.InPlace]). Its errors are those of Append.
func (s *Store) Sync() error {
	if err := s.usable(); err != nil {
		return err
	}
	w := &s.log
	if w.f == nil || w.pos+int64(len(w.buf)) == w.synced {
		return s.InPlace()
	}
	if err := s.flush(); err != nil {
		return err
	}
	if !s.opts.NoSync {
		if err := s.syncLog(); err != nil {
			return s.poison(err)
		}
		switch err := s.syncName(); {
		case noDescriptor(err): // the folder was not opened, and the log is still new
			return s.full(err)
		case err != nil:
			return s.poison(err)
		}
	}
	if err := s.logInPlace(); err != nil { // last, because what somebody removes later was durable when it was acknowledged
		return s.poison(err)
	}
	w.synced = w.pos
	s.mu.Lock()
	defer s.mu.Unlock()
	s.synced = s.last
	return nil
}

// syncLog makes the content durable. It is not tried again after an error, because
// the system may have dropped what it could not write.
func (s *Store) syncLog() error {
	w := &s.log
	if err := w.f.Sync(); err != nil {
		return fmt.Errorf("fsync %s from offset %d: %w", w.path, w.synced, err)
	}
	return nil
}

// syncName makes the name of a new log durable.
func (s *Store) syncName() error {
	w := &s.log
	if w.newName {
		if err := s.fs.SyncDir(s.logDir); err != nil {
			return fmt.Errorf("fsync %s: %w", s.logDir, err)
		}
		w.newName = false
	}
	return nil
}

// flush writes the buffer to the file.
func (s *Store) flush() error {
	w := &s.log
	if err := s.extend(int64(len(w.buf))); err != nil {
		return err
	}
	n, err := w.f.WriteAt(w.buf, w.pos)
	switch {
	case err == nil:
	case isFull(err):
		return s.full(err)
	default:
		return s.poison(fmt.Errorf("write %s at offset %d: %w", w.path, w.pos+int64(n), err))
	}
	w.pos += int64(n)
	w.length = max(w.length, w.pos)
	w.buf = w.buf[:0]
	return nil
}

// extend reserves space ahead as ZooKeeper does, so that an fsync need not write a new
// length each time. If there is no space for that, the log continues without it.
func (s *Store) extend(n int64) error {
	w := &s.log
	ahead := s.opts.PreallocBytes
	if ahead == 0 {
		ahead = preallocDefault
	}
	if ahead < 0 || w.sparse || w.pos+n+preallocSlack < w.length {
		return nil
	}
	length := w.pos + n + preallocSlack + ahead
	length -= length % ahead
	err := w.f.Allocate(length)
	if isFull(err) {
		w.sparse = true
		return nil
	}
	if err != nil {
		return s.poison(fmt.Errorf("extend %s: %w", w.path, err))
	}
	w.length = length
	return nil
}

// full cuts the log back, durably, to its durable part: after a crash the log must not
// contain what was refused.
func (s *Store) full(cause error) error {
	w := &s.log
	path := w.path
	if w.f != nil {
		if err := s.cutBack(); err != nil {
			return s.poison(fmt.Errorf("remove the end of %s, for which there is no space: %w", path, err))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = s.synced
	return &FullError{File: path, Zxid: s.synced, Err: cause}
}

func (s *Store) cutBack() error {
	w := &s.log
	if err := w.f.Truncate(w.synced); err != nil {
		return err
	}
	if err := w.f.Sync(); err != nil {
		return err
	}
	w.buf = w.buf[:0]
	w.pos, w.length, w.sparse = w.synced, w.synced, false
	if w.synced > 0 {
		return nil
	}
	if err := s.fs.Remove(w.path); err != nil { // the file contains nothing
		return err
	}
	return w.close()
}

// Roll makes the current log durable and ends it; the next Append begins another.
func (s *Store) Roll() error {
	if err := s.Sync(); err != nil {
		return err
	}
	w := &s.log
	if w.f == nil {
		return nil
	}
	// Release the reserved space. If that fails or is not durable nothing changes,
	// because zeros at the end have no meaning.
	if w.length > w.pos {
		_ = w.f.Truncate(w.pos)
	}
	if err := w.close(); err != nil {
		return s.poison(fmt.Errorf("close the log: %w", err))
	}
	return nil
}

// LogBytes returns the length of the current log in bytes, without reserved space; 0
// between a Roll and the next Append. Only the goroutine that appends may call it.
func (s *Store) LogBytes() int64 { return s.log.pos + int64(len(s.log.buf)) }

// roomLen is how much space Room needs to find, in bytes.
const roomLen = 1 << 20

// Room checks, after a [*FullError], whether there is space again. It returns nil if
// there is, and a FullError if not. Any other error says why it could not find out.
func (s *Store) Room() error {
	if err := s.usable(); err != nil {
		return err
	}
	path := filepath.Join(s.logDir, tempPrefix+"room")
	err := s.probe(path)
	switch {
	case err == nil:
		return nil
	case isFull(err):
		return &FullError{File: path, Zxid: s.Synced(), Err: err}
	default:
		return fmt.Errorf("check for free space: %s: %w", path, err)
	}
}

// probe writes a file of roomLen bytes and removes it.
func (s *Store) probe(path string) error {
	f, err := s.fs.Create(path)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(make([]byte, roomLen), 0)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close(), s.fs.Remove(path))
}
