package main

import (
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	// logBytesMax is how many bytes of the log may wait to be written.
	logBytesMax = 1 << 20
	// logBytesKept is the largest buffer that is kept after its lines were written.
	logBytesKept = 64 << 10
	// logEndTimeout is how long the end of the program waits for the last lines to be written.
	logEndTimeout = time.Second
)

// logOutput passes the lines of a log on to a writer, and never makes its caller wait. A terminal after Ctrl-S, a log
// collector that hangs or a hung disk would otherwise stop the server with its next line. While too many lines wait, further
// ones are lost, and the log says so when it is read again. It is safe for concurrent use.
type logOutput struct {
	w    io.Writer
	lost func(lines int) // logs that lines were lost
	wake chan struct{}   // holds a token if the goroutine has something to do
	done chan struct{}   // closed when the goroutine has ended

	mu      sync.Mutex
	waiting []byte // lines that the goroutine has not taken
	missed  int    // lines that were lost and that lost was not told
	ended   bool
}

// newLogOutput starts the goroutine that writes to w. lost is called on it and may write to the log. The caller must call
// close.
func newLogOutput(w io.Writer, lost func(lines int)) *logOutput {
	o := &logOutput{w: w, lost: lost, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go o.run()
	return o
}

// newLog returns a log that never makes its caller wait, and its output, which the caller must close.
func newLog(w io.Writer, handler func(io.Writer) slog.Handler) (*slog.Logger, *logOutput) {
	var log *slog.Logger
	out := newLogOutput(w, func(lines int) { log.Error("lines of the log were lost because nobody read it", "lines", lines) })
	log = slog.New(handler(out))
	return log, out
}

// Write queues one line, or loses and counts it. It returns no error.
func (o *logOutput) Write(line []byte) (int, error) {
	o.mu.Lock()
	if len(o.waiting)+len(line) > logBytesMax {
		o.missed++
	} else {
		o.waiting = append(o.waiting, line...)
	}
	o.mu.Unlock()
	o.signal()
	return len(line), nil
}

// signal wakes the goroutine.
func (o *logOutput) signal() {
	select {
	case o.wake <- struct{}{}:
	default: // a token is there already
	}
}

// close waits until all lines are written, but not longer than logEndTimeout.
func (o *logOutput) close() {
	o.mu.Lock()
	o.ended = true
	o.mu.Unlock()
	o.signal()
	select {
	case <-o.done:
	case <-time.After(logEndTimeout):
	}
}

func (o *logOutput) run() {
	defer close(o.done)
	var spare []byte
	for range o.wake {
		lines, missed, ended := o.take(spare)
		o.w.Write(lines) // there is no place to report an error
		if spare = lines; cap(spare) > logBytesKept {
			spare = nil
		}
		switch {
		case missed > 0:
			o.lost(missed)
			o.signal()
		case ended && len(lines) == 0:
			return
		case ended:
			o.signal()
		}
	}
}

// take returns the lines that wait. From then on, new lines wait in spare.
func (o *logOutput) take(spare []byte) (lines []byte, missed int, ended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	lines, missed = o.waiting, o.missed
	o.waiting, o.missed = spare[:0], 0
	return lines, missed, o.ended
}
