package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"bellwether/internal/record"
	"bellwether/wire"
)

// Report holds what Check found. Damage lists defects that no crash causes; a store without
// them can be loaded. Notes list what a crash left behind, what a start ignores, and what
// matters only if an older state is needed. Notes do not prevent loading.
type Report struct {
	Snapshots []CheckedSnapshot
	Logs      []CheckedLog
	LastZxid  wire.Zxid // where the history would end after a start; -1 if the start would be refused
	Damage    []*DamageError
	Notes     []string
}

// CheckedSnapshot describes a snapshot file.
type CheckedSnapshot struct {
	Path   string
	Zxid   wire.Zxid
	Nodes  int
	Digest *SnapshotDigest
	Sound  bool
}

// CheckedLog describes a log file. First and Last are 0 if it holds no record.
type CheckedLog struct {
	Path        string
	First, Last wire.Zxid
	Records     int
	End         int64 // the offset after the last whole record
	Size        int64
}

// Check reads the whole directory without changing it and without its lock, and reports
// all damage, each with file and offset. If a server is running the last log may look
// unfinished. An error means that Check could not read the directory.
func Check(fs FS, o Options) (*Report, error) {
	if o.LogDir == "" {
		o.LogDir = o.DataDir
	}
	c := checker{
		s:   &Store{fs: fs, opts: o, snapDir: filepath.Join(o.DataDir, versionDir), logDir: filepath.Join(o.LogDir, versionDir)},
		rep: &Report{LastZxid: -1},
	}
	if sameDir(fs, c.s.snapDir, c.s.logDir) {
		c.s.logDir = c.s.snapDir
	}
	if err := checkSplit(fs, c.s.snapDir, c.s.logDir); err != nil {
		return nil, err
	}
	for _, step := range []func() error{c.snapshots, c.logs, c.start, c.names} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return c.rep, nil
}

type checker struct {
	s   *Store
	rep *Report
}

func (c *checker) note(format string, args ...any) {
	c.rep.Notes = append(c.rep.Notes, fmt.Sprintf(format, args...))
}

// noted reports whether a note of the loader is about a snapshot that Check has already
// reported as incomplete.
func (c *checker) noted(note string) bool {
	path, _, passed := strings.Cut(note, " is skipped, and an older one is used")
	return passed && slices.ContainsFunc(c.rep.Notes, func(n string) bool { return strings.HasPrefix(n, path+" is incomplete") })
}

func (c *checker) damage(d *DamageError) {
	for _, known := range c.rep.Damage {
		if known.File == d.File && known.Offset == d.Offset {
			return
		}
	}
	c.rep.Damage = append(c.rep.Damage, d)
}

func (c *checker) snapshots() error {
	files, _, err := listFiles(c.s.fs, c.s.snapDir, snapshotPrefix)
	if err != nil {
		return err
	}
	for _, file := range files {
		sink := &snapshotShape{nodes: map[string]bool{}, acls: map[int64]bool{}}
		found, err := readSnapshot(c.s.fs, file, sink)
		var unsound *UnsoundError
		switch {
		case errors.As(err, &unsound) && unsound.Short && !sealed(c.s.fs, file):
			c.note("%s is incomplete, as an interrupted writer leaves it; the next start uses an older one: %v", file.path, unsound)
		case errors.As(err, &unsound):
			c.damage(&DamageError{File: file.path, Offset: unsound.Offset, What: unsound.Error(),
				Do: "move it away; an older one and the logs are enough if they are sound"})
		case err != nil:
			return err
		case found.misnamed(file.zxid) != "":
			err = &UnsoundError{What: found.misnamed(file.zxid), misnamed: true, reaches: found.reaches()}
			c.note("%s: %v", file.path, err)
		}
		for _, odd := range sink.faults {
			c.note("%s: %s", file.path, odd)
		}
		c.rep.Snapshots = append(c.rep.Snapshots, CheckedSnapshot{file.path, file.zxid, len(sink.nodes), found.digest, err == nil})
	}
	return nil
}

// sealed reports whether a plain snapshot ends like a complete one. If such a snapshot
// seems too short, it was not cut off: a length inside it is wrong.
func sealed(fs FS, file fileName) bool {
	f, err := fs.Open(file.path)
	if err != nil {
		return false
	}
	end := []byte("\x00\x00\x00\x01" + nodesEnd)
	last := make([]byte, len(end))
	_, err = f.ReadAt(last, max(0, file.size-int64(len(end))))
	return errors.Join(err, f.Close()) == nil && file.form == Plain && bytes.Equal(last, end)
}

// snapshotShape is a sink that keeps what is needed to check whether a snapshot is consistent.
type snapshotShape struct {
	Discard
	nodes  map[string]bool
	acls   map[int64]bool
	faults []string
}

func (s *snapshotShape) ACL(key int64, _ []wire.ACL) error {
	s.acls[key] = true
	return nil
}

func (s *snapshotShape) Node(path string, n *record.DataNode) error {
	if parent := path[:max(0, strings.LastIndexByte(path, '/'))]; path != "" && !s.nodes[parent] {
		return fmt.Errorf("%q comes before its parent", path)
	}
	if n.ACL != -1 && !s.acls[n.ACL] {
		s.faults = append(s.faults, fmt.Sprintf("%q has ACL %d, which the snapshot does not contain", path, n.ACL))
	}
	s.nodes[path] = true
	return nil
}

// logs reads every log to its end, including those that a start would not need.
func (c *checker) logs() error {
	logs, err := c.logsByContent()
	if err != nil {
		return err
	}
	h := &history{fs: c.s.fs, logs: logs, base: -1, lost: true}
	h.report = func(d *DamageError) error {
		if d.gap {
			c.note("%v", d)
		} else {
			c.damage(d)
		}
		return nil
	}
	var decoder record.TxnDecoder
	h.eachRecord = func(rec logRecord) error {
		_, err := rec.decode(&decoder)
		return err
	}
	if err := h.walk(); err != nil {
		return err
	}
	c.rep.Notes = append(c.rep.Notes, h.notes...)
	for _, e := range h.ends {
		c.rep.Logs = append(c.rep.Logs, CheckedLog{e.file.path, e.first, e.last, e.records, e.end, e.size})
		if e.verdict.ending == endTorn {
			c.note("%s at offset %d: %s; a crash can have left it so", e.file.path, e.verdict.off, e.verdict.what)
		} else if e.records == 0 && e.verdict.ending == endClean {
			c.note("%s holds no transaction, as usual for a log that a server has just begun; the next start sets it aside", e.file.path)
		}
	}
	return nil
}

// start runs the steps of Load, but changes nothing.
func (c *checker) start() error {
	snapshots, _, err := listFiles(c.s.fs, c.s.snapDir, snapshotPrefix)
	if err != nil {
		return err
	}
	logs, err := c.logsByContent()
	if err != nil {
		return err
	}
	if z, ok, err := c.s.pendingCut(); err != nil {
		return c.judge(err)
	} else if ok {
		c.note("the next start continues to remove the transactions after %v", z)
		above := func(f fileName) bool { return f.zxid > z }
		snapshots, logs = slices.DeleteFunc(snapshots, above), slices.DeleteFunc(logs, above)
	}
	l := loader{s: c.s, sink: Discard{}}
	if _, err := l.newest(snapshots, logs); err != nil {
		return c.judge(err)
	}
	told := l.res.Notes
	if err := l.checkStrays(l.end()); err != nil {
		return c.judge(err)
	}
	l.res.Notes = told // names reports the stray files
	return c.arrive(&l)
}

// arrive reports where the history would end after the start that l has simulated, and
// what that start would do about files with wrong names.
func (c *checker) arrive(l *loader) error {
	if refused, err := c.misnamedLogs(); refused || err != nil {
		return err
	}
	for _, u := range l.unsound {
		if u.err.misnamed {
			c.misnamed(u)
		}
	}
	l.res.Empty, l.res.Marked = l.end() < 0, slices.ContainsFunc(c.s.markers(), c.s.exists)
	if err := l.suspect(); err != nil {
		return c.judge(err)
	}
	for _, n := range l.res.Notes {
		if !c.noted(n) {
			c.note("%s", n)
		}
	}
	c.rep.LastZxid = max(0, l.res.LastZxid)
	return c.epochs()
}

// misnamed reports a snapshot that contradicts its name, so that a start does not use it.
func (c *checker) misnamed(u unsoundSnapshot) {
	d := u.damage("the next start sets it aside and uses an older one and the logs")
	c.damage(d)
	for i := range c.rep.Snapshots {
		if s := &c.rep.Snapshots[i]; s.Path == u.file.path {
			s.Sound = false
		}
	}
}

// misnamedLogs reports the logs with a wrong name. refused is true if a start could not
// rename one of them.
func (c *checker) misnamedLogs() (refused bool, err error) {
	wrong, err := misnamedLogs(c.s.fs, c.s.logDir)
	for _, log := range wrong {
		c.damage(log.damage())
		refused = refused || log.taken
	}
	return refused, err
}

// logsByContent lists the logs in the order of their first transactions, as a start reads
// them after it has renamed those with a wrong name.
func (c *checker) logsByContent() ([]fileName, error) {
	named, _, err := listFiles(c.s.fs, c.s.logDir, logPrefix)
	if err != nil {
		return nil, err
	}
	logs, err := byContent(c.s.fs, named)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(logs, func(a, b fileName) int { return cmp.Compare(a.zxid, b.zxid) })
	return logs, nil
}

// judge reports an error that is damage and makes a start refuse the history. It returns
// every other error.
func (c *checker) judge(err error) error {
	var d *DamageError
	if errors.As(err, &d) {
		c.rep.LastZxid = -1
		c.damage(d)
		return nil
	}
	return err
}

// epochs checks the epoch files, if there are any.
func (c *checker) epochs() error {
	on, err := c.s.epochsOnDisk()
	if err == nil && (on.hasCurrent || on.hasAccepted) {
		_, err = c.s.settleEpochs(on, c.rep.LastZxid.Epoch())
	}
	return c.judge(err)
}

// names reports files in the directories that are not read.
func (c *checker) names() error {
	for _, dir := range c.s.dirs() {
		entries, err := c.s.fs.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name)
			_, _, isLog := parseName(e.Name, logPrefix, false)
			_, _, isSnapshot := parseName(e.Name, snapshotPrefix, true)
			switch {
			case (isLog || isSnapshot) && e.Not == "":
			case strings.HasPrefix(e.Name, asidePrefix):
				c.note("%s was set aside", path)
			case strings.HasPrefix(e.Name, tempPrefix):
				c.note("%s is unfinished; the next start removes it", path)
			case strings.HasPrefix(e.Name, snapshotPrefix) && strings.HasSuffix(e.Name, ".tmp") && e.Not == "":
				c.note("%s was never finished, because ZooKeeper was interrupted while it wrote the snapshot; the next start sets it aside", path)
			case strings.HasPrefix(e.Name, logPrefix), strings.HasPrefix(e.Name, snapshotPrefix):
				c.note("%s is not read here, but a ZooKeeper server may take it for one of its own; move it away", path)
			}
		}
	}
	return nil
}
