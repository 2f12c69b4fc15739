package terminal

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	// barAfter is how long a command takes before its bar appears.
	barAfter = 300 * time.Millisecond
	// barEvery is the time between two drawings.
	barEvery = 100 * time.Millisecond
	// barLeast and barMost are the lengths of the drawn bar, in columns.
	barLeast, barMost = 10, 40
)

// Bar shows in one line how far a long command is. If its file is not a terminal, it shows
// nothing. It can be used by several goroutines. The zero Bar and a nil *Bar show nothing.
type Bar struct {
	mu    sync.Mutex
	out   *os.File // nil: show nothing
	what  string
	begun time.Time
	drawn time.Time
}

// NewBar returns a bar that is drawn on f, usually os.Stderr. what names the work.
func NewBar(f *os.File, what string) *Bar {
	b := &Bar{what: what, begun: time.Now()}
	if Is(f) && os.Getenv("TERM") != "dumb" {
		b.out = f
	}
	return b
}

// Set shows how much of the work is done, of total. A total of 0 means that it is not known.
func (b *Bar) Set(done, total int64) {
	if b == nil || b.out == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if now.Sub(b.begun) < barAfter || now.Sub(b.drawn) < barEvery {
		return
	}
	b.drawn = now
	columns, _ := Size(b.out)
	fmt.Fprintf(b.out, "\r%s\x1b[K", barText(b.what, done, total, now.Sub(b.begun), columns))
}

// Close removes the bar.
func (b *Bar) Close() {
	if b == nil || b.out == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.drawn.IsZero() {
		fmt.Fprint(b.out, "\r\x1b[K")
	}
	b.out = nil
}

// barText returns the line of a bar. It leaves out the parts for which the terminal is too narrow, and
// always one column, because some terminals begin a new line after the last one.
func barText(what string, done, total int64, took time.Duration, columns int) string {
	room := columns - 1
	if columns <= 0 {
		room = 79
	}
	parts := []string{fmt.Sprintf("%s %d", what, done)}
	if total > 0 {
		percent := min(100, done*100/total)
		parts = []string{fmt.Sprintf("%s %d%%", what, percent), fmt.Sprintf("%d of %d", done, total)}
		if left := timeLeft(done, total, took); left != "" {
			parts = append(parts, left)
		}
	}
	text := parts[0]
	if utf8.RuneCountInString(text) > room {
		text = text[strings.LastIndexByte(text, ' ')+1:]
	}
	for _, p := range parts[1:] {
		if utf8.RuneCountInString(text)+2+len(p) <= room {
			text += "  " + p
		}
	}
	length := min(barMost, room-utf8.RuneCountInString(text)-4)
	if total > 0 && length >= barLeast {
		full := int(min(total, done) * int64(length) / total)
		text += "  [" + strings.Repeat("#", full) + strings.Repeat(".", length-full) + "]"
	}
	return text
}

// timeLeft returns an estimate of how long the rest takes, empty if it is not known yet.
func timeLeft(done, total int64, took time.Duration) string {
	if done <= 0 || done >= total || took < time.Second {
		return ""
	}
	left := time.Duration(float64(took) / float64(done) * float64(total-done))
	return left.Round(time.Second).String() + " left"
}
