package store

import (
	"errors"
	"fmt"
	"path/filepath"

	"bellwether/internal/record"
	"bellwether/wire"
)

// A server finds its history by the names of files, and an operator can rename a file. A
// snapshot with the name of a later transaction hides the transactions in the logs up to
// that one; a log with the name of an earlier transaction is not read. So the store
// compares names with contents. docs/formats/directory.md has the table of what it does
// in each case.

// checkName compares a snapshot's name with its content and with the logs. It returns an
// [*UnsoundError] if the snapshot does not contain what its name says.
func (l *loader) checkName(file fileName, c contents, logs []fileName) error {
	if what := c.misnamed(file.zxid); what != "" {
		return &UnsoundError{What: what, misnamed: true, reaches: c.reaches()}
	}
	if c.proves(file.zxid) {
		return nil
	}
	lacks, err := l.findLacking(file.zxid, c, logs)
	if err != nil || lacks == nil {
		return err
	}
	what := fmt.Sprintf("it does not contain %[2]v, which is in %[1]s", lacks.log, lacks.zxid)
	switch sent, err := l.s.mayBeSent(file.zxid); {
	case err != nil:
		return err
	case sent && lacks.zxid.Epoch() < file.zxid.Epoch() && c.digested() == 0:
		// A leader of a later epoch may have sent the snapshot because the end of this
		// log is not in that leader's history. ZooKeeper leaves such a log in place.
		l.note("%s: %s; that is correct if a leader of epoch %d sent this snapshot; otherwise its name is wrong",
			file.path, what, file.zxid.Epoch())
		return nil
	}
	return &UnsoundError{What: what, misnamed: true, reaches: c.reaches()}
}

// lacking is a transaction that a log contains and the snapshot should contain.
type lacking struct {
	zxid wire.Zxid
	log  string
}

// findLacking looks in the logs for a transaction that the snapshot should contain
// according to its name but does not contain; nil if there is none. If the snapshot says
// which transaction is its last, it lacks every later one. Otherwise only a later
// transaction that changes a znode proves that the snapshot lacks it.
func (l *loader) findLacking(name wire.Zxid, c contents, logs []fileName) (*lacking, error) {
	from, found := max(c.newest, c.digested()), wire.Zxid(0)
	var unproved, reached bool
	var decoder record.TxnDecoder
	h := &history{fs: l.s.fs, logs: logsFrom(logs, from), base: from, lost: true}
	h.report = func(*DamageError) error { return nil } // replay reports the damage that matters
	h.eachRecord = func(rec logRecord) error {
		if reached = rec.zxid >= name; rec.zxid > name {
			return errFound
		}
		unproved = true
		t, err := rec.decode(&decoder)
		if c.digested() > 0 || err == nil && changesZnodes(t) {
			found = rec.zxid
			return errFound
		}
		return nil
	}
	if err := h.walk(); err != nil && !errors.Is(err, errFound) {
		return nil, err
	}
	if found != 0 {
		return &lacking{found, logsFrom(logs, found)[0].base()}, nil
	}
	if unproved && !reached && name.Counter() != 0 {
		l.note("%s does not say which transactions it contains, and the logs, which end before its name, hold some after its last change, %v; "+
			"if its name is wrong, sessions or ACLs are lost", snapshotName(name, Plain), from)
	}
	return nil, nil
}

// mayBeSent reports whether a leader can have sent this server a snapshot of zxid, which
// requires that this server has accepted that leader's epoch. Only a snapshot from a
// leader can contain transactions that this server's logs lack.
func (s *Store) mayBeSent(zxid wire.Zxid) (bool, error) {
	on, err := s.epochsOnDisk()
	return (on.hasAccepted || on.hasCurrent) && max(on.Accepted, on.Current) >= zxid.Epoch(), err
}

// setAsideMisnamed sets aside the misnamed snapshots if a sound history was loaded
// without them. They contain nothing that this history lacks.
func (l *loader) setAsideMisnamed() error {
	for _, u := range l.unsound {
		if !u.err.misnamed {
			continue
		}
		to, err := setAside(l.s.fs, u.file.path)
		if err != nil {
			return err
		}
		l.note("%s: set aside as %s", u.file.path, filepath.Base(to))
	}
	return nil
}

// rename gives each misnamed log its right name. A server names each log after its first
// transaction, and every record carries its own zxid, so the right name is certain.
func (s *Store) rename() error {
	wrong, err := misnamedLogs(s.fs, s.logDir)
	if err != nil {
		return err
	}
	for _, log := range wrong {
		if log.taken {
			return log.damage()
		}
		if err := s.fs.Rename(log.path, log.right); err != nil {
			return fmt.Errorf("%s begins with %v and should be named %s: %w", log.path, log.first, filepath.Base(log.right), err)
		}
		if err := s.fs.SyncDir(s.logDir); err != nil {
			return err
		}
		s.opened = append(s.opened, fmt.Sprintf("%s begins with %v; renamed to %s", log.path, log.first, filepath.Base(log.right)))
	}
	return nil
}

// misnamedLog is a log that is not named after its first transaction.
type misnamedLog struct {
	path  string
	first wire.Zxid
	right string // the path that it should have
	taken bool   // a file with that path exists
}

func misnamedLogs(fs FS, dir string) ([]misnamedLog, error) {
	named, _, err := listFiles(fs, dir, logPrefix)
	if err != nil {
		return nil, err
	}
	logs, err := byContent(fs, named)
	if err != nil {
		return nil, err
	}
	var wrong []misnamedLog
	for i, log := range named {
		if first := logs[i].zxid; first != log.zxid {
			right := filepath.Join(dir, logName(first))
			_, err := fs.Stat(right)
			wrong = append(wrong, misnamedLog{log.path, first, right, err == nil})
		}
	}
	return wrong, nil
}

func (l misnamedLog) damage() *DamageError {
	d := &DamageError{File: l.path, Offset: logHeaderLen, What: fmt.Sprintf("its first transaction is %v", l.first),
		Do: fmt.Sprintf("rename it to %s, as the next start does", filepath.Base(l.right))}
	if l.taken {
		d.What += fmt.Sprintf(", and there is another %s", filepath.Base(l.right))
		d.Do = "name each log after its first transaction, and move copies out of the directory"
	}
	return d
}

// byContent returns a copy of logs. In the copy, each log that has a transaction has the
// zxid of its first transaction in place of the zxid in its name.
func byContent(fs FS, logs []fileName) ([]fileName, error) {
	out := make([]fileName, len(logs))
	for i, log := range logs {
		first, err := firstTxn(fs, log)
		if err != nil {
			return nil, err
		}
		if out[i] = log; first > 0 {
			out[i].zxid = first
		}
	}
	return out, nil
}

// firstTxn returns the zxid of the first transaction of a log; 0 if none can be read.
func firstTxn(fs FS, log fileName) (first wire.Zxid, err error) {
	s, err := openLog(fs, log.path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	v, err := s.header()
	if err != nil || v.ending != endNone {
		return 0, err
	}
	rec, v, err := s.next()
	if err != nil || v.ending != endNone {
		return 0, err
	}
	return rec.zxid, nil
}

// checkStrays refuses a history that ends at last if a stray may contain later
// transactions: an entry of the directories that is named like a log or a snapshot but
// cannot be read under that name. Every other stray is noted.
func (l *loader) checkStrays(last wire.Zxid) error {
	for _, dir := range []struct{ path, prefix, other string }{{l.s.snapDir, snapshotPrefix, logMagic}, {l.s.logDir, logPrefix, snapshotMagic}} {
		files, strays, err := listFiles(l.s.fs, dir.path, dir.prefix)
		if err != nil {
			return err
		}
		for _, f := range files {
			if begins(l.s.fs, f.path, dir.other) {
				strays = append(strays, misplaced{path: f.path})
			}
		}
		for _, misplaced := range strays {
			reach, what := misplaced.reach(l.s.fs)
			if misses := l.whyMissing(reach, last); misses != "" {
				return &DamageError{File: misplaced.path, What: fmt.Sprintf("%s; the readable history %s", what, misses),
					Do: fmt.Sprintf("if it belongs to this history, correct its name; otherwise move it out of %s", dir.path)}
			}
			l.note("%s is not read: %s", misplaced.path, what)
		}
	}
	return nil
}

// whyMissing describes how a history that ends at last lacks the transaction z; "" if the
// history contains z.
func (l *loader) whyMissing(z, last wire.Zxid) string {
	if z > last {
		return fmt.Sprintf("ends at %v", max(last, 0))
	}
	for _, j := range l.jumps {
		if j.prev < z && z < j.next && z.Counter() != 0 {
			return fmt.Sprintf("continues with %v after %v", j.next, j.prev)
		}
	}
	return ""
}

// begins reports whether a file begins with these bytes.
func begins(fs FS, path, magic string) bool {
	f, err := fs.Open(path)
	if err != nil {
		return false
	}
	b := make([]byte, len(magic))
	_, err = f.ReadAt(b, 0)
	return errors.Join(err, f.Close()) == nil && string(b) == magic
}

// misplaced is a directory entry whose name begins like that of a log or a snapshot but that
// cannot be read as one.
type misplaced struct {
	path string
	not  string // what the entry is if it is not a file; "" if it is a file, whose name then is wrong
}

// reach returns the last transaction that a stray may contain, and describes the stray.
// The zxid is -1 if the stray contains none.
func (s misplaced) reach(fs FS) (wire.Zxid, string) {
	base := filepath.Base(s.path)
	named, isNamed := looseZxid(base)
	switch {
	case s.not != "" && isNamed:
		return named, fmt.Sprintf("it is %s in the place of a file", s.not)
	case s.not != "":
		return -1, "it is " + s.not
	}
	if c, err := readSnapshot(fs, fileName{path: s.path, form: extension(base)}, Discard{}); err == nil {
		return c.reaches(), fmt.Sprintf("it is a snapshot with changes up to %v, and its name is not that of one", c.reaches())
	}
	h := &history{fs: fs, logs: []fileName{{path: s.path}}, base: -1, lost: true}
	h.report = func(*DamageError) error { return nil }
	h.eachRecord = func(logRecord) error { return nil }
	if err := h.walk(); err == nil && h.last > 0 {
		return h.last, fmt.Sprintf("it is a log with transactions up to %v, and its name is not that of one", h.last)
	}
	return -1, "its name is not that of a log or a snapshot"
}

// extension returns the last part of a name if it is the extension of a compression.
func extension(base string) Compression {
	if ext := filepath.Ext(base); ext == "."+string(Gzip) || ext == "."+string(Snappy) {
		return Compression(ext[1:])
	}
	return Plain
}
