package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"
)

// Format is how records are written.
type Format int

// The formats of an audit log.
const (
	Text Format = iota // as ZooKeeper's logging configuration writes them: time, level, logger, record
	JSON               // one JSON object on each line
)

// The limits of a Log.
const (
	pendingMax = 64 << 20    // bytes of records that wait for the file, if Options do not say otherwise
	bufferKeep = 1 << 20     // a larger buffer is not kept after its write
	retryWait  = time.Second // after an error, until the file is tried again
)

var newline = []byte("\n")

// Options say where and how a Log writes.
type Options struct {
	Path     string // the file; it is created if it is missing, and appended to; a named pipe must have a reader
	Format   Format // form of the records
	BytesMax int64  // size at which the file is renamed to Path.1; 0 means 10 MB
	FilesMax int    // older files that are kept, Path.1 to Path.FilesMax; 0 means 10
	// PendingMax is how many bytes of records may wait for the file; further records are lost.
	// 0 means 64 MiB, because the end of a session with a million ephemerals makes as many records.
	PendingMax int
	Logger     *slog.Logger // where a loss is reported
}

// Log writes records to a file. It is safe for concurrent use.
//
// Invariants: taken + len(pending) < o.PendingMax + two records; a lost record counts in lost until
// the goroutine has taken a record that says so.
type Log struct {
	o    Options
	wake chan struct{} // holds a token if the goroutine has something to do
	done chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	pending []byte // formatted records that the goroutine has not taken
	taken   int    // bytes of records that the goroutine has taken and not yet written
	ended   bool   // Close was called: Write does nothing any more
	lost    int    // records that were lost and that no taken record reports
	total   int    // records that were lost since Open

	// Only the goroutine uses these.
	file    *os.File
	info    os.FileInfo // information about file, to notice that another program has renamed it
	size    int64
	failing bool // the last write failed; this was logged
	tooLong bool // the last rotation failed; this was logged
}

// Open opens the file of o and starts the goroutine that writes it. The caller must call
// Close. An error names the file, the key of zoo.cfg and what to do.
func Open(o Options) (*Log, error) {
	if o.BytesMax == 0 {
		o.BytesMax = 10 << 20
	}
	if o.FilesMax == 0 {
		o.FilesMax = 10
	}
	if o.PendingMax == 0 {
		o.PendingMax = pendingMax
	}
	l := &Log{o: o, wake: make(chan struct{}, 1), done: make(chan struct{})}
	if err := l.open(); err != nil {
		return nil, openError(o.Path, err)
	}
	go l.run()
	return l, nil
}

// Write queues a record. It never waits for the file: if too much is queued, the record is
// lost and counted. After Close it does nothing.
func (l *Log) Write(r Record) {
	now := time.Now()
	l.mu.Lock()
	switch {
	case l.ended:
	case l.taken+len(l.pending) >= l.o.PendingMax:
		l.count(1)
	default:
		l.pending = l.append(l.pending, &r, now)
	}
	l.mu.Unlock()
	l.signal()
}

// signal wakes the goroutine.
func (l *Log) signal() {
	select {
	case l.wake <- struct{}{}:
	default: // a wake-up is already pending
	}
}

// count counts lost records. The caller holds l.mu.
func (l *Log) count(n int) {
	l.lost += n
	l.total += n
}

// Lose counts a record that could not be made. The log reports it like other lost records.
func (l *Log) Lose() {
	l.mu.Lock()
	if !l.ended {
		l.count(1)
	}
	l.mu.Unlock()
	l.signal()
}

// Lost returns how many records were lost since Open.
func (l *Log) Lost() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

// Close writes what is queued and closes the file. It returns when that is done or when
// ctx ends. On a disk that hangs, the goroutine then still runs.
func (l *Log) Close(ctx context.Context) error {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.signal()
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("audit log %s: the disk does not answer, and the last records may be lost: %w", l.o.Path, ctx.Err())
	}
}

// run writes what is queued, until Close. After an error it keeps what is not in the file, waits, and
// tries again; meanwhile the queue may fill up.
func (l *Log) run() {
	defer close(l.done)
	defer func() {
		if l.file != nil {
			l.closeFile()
		}
	}()
	var (
		buffer []byte // holds taken, and is used again when all of it is in the file
		taken  []byte // records that are not yet in the file
		lost   int    // lost records that the last record of taken reports
	)
	for range l.wake {
		if len(taken) == 0 {
			buffer, lost = l.take(buffer)
			taken = buffer
		}
		taken = taken[l.write(taken):]
		if len(taken) == 0 {
			if lost > 0 {
				l.o.Logger.Error("records of the audit log were lost; from now on records are written again", "path", l.o.Path, "lost", lost)
				lost = 0
			}
			if cap(buffer) > bufferKeep {
				buffer = nil
			}
		}
		if l.settle(taken) {
			return
		}
	}
}

// take returns the queued records and the number of lost records. If records were lost, the last
// record of taken says how many. From then on, new records are queued in buffer.
func (l *Log) take(buffer []byte) (taken []byte, lost int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken, lost = l.pending, l.lost
	l.pending, l.lost = buffer[:0], 0
	if lost > 0 {
		gap := Record{Operation: opLost, Result: Failure, lost: lost}
		taken = l.append(taken, &gap, time.Now())
	}
	l.taken = len(taken)
	return taken, lost
}

// settle records how many bytes of taken are not written yet, and waits for retryWait if there are any. It
// reports whether the goroutine must end. After Close, it does not wait: the records that the last
// attempt has not written are lost.
func (l *Log) settle(taken []byte) (over bool) {
	l.mu.Lock()
	l.taken = len(taken)
	ended, more := l.ended, len(l.pending) > 0 || l.lost > 0
	if ended && len(taken) > 0 {
		missing := bytes.Count(taken, newline) + bytes.Count(l.pending, newline)
		l.total += missing
		l.mu.Unlock()
		l.o.Logger.Error("the audit log ends, and its last records are lost: the file cannot be written", "path", l.o.Path, "lost", missing)
		return true
	}
	l.mu.Unlock()
	switch {
	case len(taken) > 0:
		l.pause()
	case more:
		l.signal()
	case ended:
		return true
	}
	return false
}

// pause waits for retryWait, or until Close.
func (l *Log) pause() {
	timer := time.NewTimer(retryWait)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			l.signal()
			return
		case <-l.wake:
		}
		l.mu.Lock()
		ended := l.ended
		l.mu.Unlock()
		if ended {
			l.signal()
			return
		}
	}
}

// append appends the line of a record. The text begins as the pattern of ZooKeeper's
// logback.xml does (%d{ISO8601} %p %c{2}: %m%n), with the time in UTC.
func (l *Log) append(b []byte, r *Record, at time.Time) []byte {
	at = at.UTC()
	switch l.o.Format {
	case JSON:
		b = append(b, `{"time":"`...)
		b = at.AppendFormat(b, time.RFC3339Nano)
		b = append(b, `",`...)
		start := len(b)
		b = r.AppendJSON(b)
		b = append(b[:start], b[start+1:]...) // the record's fields follow the time in one object
	default:
		b = at.AppendFormat(b, "2006-01-02 15:04:05,000")
		if r.Result == Failure {
			b = append(b, " ERROR "...)
		} else {
			b = append(b, " INFO "...)
		}
		b = append(b, "o.a.z.a.Slf4jAuditLogger: "...)
		b = r.AppendText(b)
	}
	return append(b, '\n')
}

// write writes formatted records and returns how many bytes of them are in the file.
func (l *Log) write(b []byte) (written int) {
	if len(b) == 0 {
		return 0
	}
	written, err := l.writeFile(b)
	if err != nil && !l.failing {
		l.o.Logger.Error("the audit log cannot be written: records wait in memory until it can; make room on the disk, or correct the permissions",
			"path", l.o.Path, "bytesMax", l.o.PendingMax, "err", err)
	}
	l.failing = err != nil
	return written
}

// writeFile writes b to the file and returns how many bytes of whole lines are in it. If
// the file was renamed or deleted, it begins a new one. After an error the next call opens
// the file again.
func (l *Log) writeFile(b []byte) (written int, err error) {
	switch now, err := os.Stat(l.o.Path); {
	case l.file == nil:
	case err != nil || !os.SameFile(now, l.info):
		l.closeFile()
	default:
		l.size = now.Size() // another program may have copied and truncated the file
	}
	if l.file != nil && l.size > 0 && l.size+int64(len(b)) > l.o.BytesMax {
		l.closeFile()
		err := l.rotate()
		if err != nil && !l.tooLong {
			l.o.Logger.Error("the audit log cannot be renamed, and grows beyond its limit: make its folder writable for the server", "path", l.o.Path, "err", err)
		}
		l.tooLong = err != nil
	}
	if l.file == nil {
		if err := l.open(); err != nil {
			return 0, err
		}
	}
	n, err := l.file.Write(b)
	if err == nil {
		l.size += int64(n)
		return n, nil
	}
	whole := bytes.LastIndexByte(b[:n], '\n') + 1
	if whole < n { // remove the line that was written only in part
		err = errors.Join(err, l.file.Truncate(l.size+int64(whole)))
	}
	l.closeFile()
	return whole, err
}

// closeFile closes the file, so that the next write opens it again.
func (l *Log) closeFile() {
	l.file.Close() // nothing was written after the last error
	l.file = nil
}

// open opens the file to append to it. If the file is a named pipe that no program reads, it returns
// syscall.ENXIO: without O_NONBLOCK it would wait for a reader.
func (l *Log) open() error {
	f, err := os.OpenFile(l.o.Path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NONBLOCK, 0o640)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	l.file, l.info, l.size = f, info, info.Size()
	return nil
}

// rotate renames the file to Path.1, Path.1 to Path.2 and so on. The oldest is replaced.
func (l *Log) rotate() error {
	name := func(i int) string {
		if i == 0 {
			return l.o.Path
		}
		return fmt.Sprintf("%s.%d", l.o.Path, i)
	}
	for i := l.o.FilesMax - 1; i >= 0; i-- {
		if err := os.Rename(name(i), name(i+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
