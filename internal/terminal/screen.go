package terminal

import (
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Screen shows a text that changes in place, and reads keys. Close gives the terminal back as it
// was.
type Screen struct {
	// Keys has the keys that the user presses, as bytes. It is closed when the terminal is gone.
	Keys <-chan byte
	// Resized has a value when the size may have changed.
	Resized <-chan os.Signal

	in, out *os.File
	before  unix.Termios
	resized chan os.Signal
	wake    *os.File // closing it ends the goroutine that reads keys
	over    sync.WaitGroup
}

// keysMax is how many unread keys are kept; later ones are dropped.
const keysMax = 16

const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
)

// OpenScreen takes over a terminal: keys are read without Enter and are not echoed. Ctrl-C still
// interrupts the process.
func OpenScreen(in, out *os.File) (*Screen, error) {
	now, err := unix.IoctlGetTermios(int(in.Fd()), getTermios)
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s := &Screen{in: in, out: out, before: *now, wake: w, resized: make(chan os.Signal, 1)}
	now.Lflag &^= unix.ICANON | unix.ECHO
	now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 1, 0
	now.Cc[unix.VSUSP] = 0 // Ctrl-Z would leave the terminal as it is now
	if err := unix.IoctlSetTermios(int(in.Fd()), setTermios, now); err != nil {
		r.Close()
		w.Close()
		return nil, err
	}
	signal.Notify(s.resized, syscall.SIGWINCH)
	keys := make(chan byte, keysMax)
	s.Keys, s.Resized = keys, s.resized
	s.over.Go(func() {
		defer close(keys)
		defer r.Close()
		readKeys(in, r, keys)
	})
	_, err = io.WriteString(out, enterScreen)
	return s, err
}

// readKeys reads keys until the other end of wake is closed or the terminal is gone.
func readKeys(in, wake *os.File, keys chan<- byte) {
	fds := []unix.PollFd{{Fd: int32(in.Fd()), Events: unix.POLLIN}, {Fd: int32(wake.Fd())}}
	buf := make([]byte, 64)
	for {
		if _, err := unix.Poll(fds, -1); err == unix.EINTR {
			continue
		} else if err != nil || fds[1].Revents != 0 {
			return
		}
		n, err := in.Read(buf)
		if err != nil {
			return
		}
		for _, b := range buf[:n] {
			select {
			case keys <- b:
			default:
			}
		}
	}
}

// Size returns the columns and rows of the screen.
func (s *Screen) Size() (columns, rows int) {
	columns, rows = Size(s.out)
	if columns == 0 || rows == 0 {
		return 80, 24
	}
	return columns, rows
}

// Draw shows a text instead of the one before. It writes each line over the old one and erases only what is left,
// so that nothing flickers. What does not fit is not shown.
func (s *Screen) Draw(text string) error {
	columns, rows := s.Size()
	var b strings.Builder
	b.WriteString("\x1b[H")
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if i == rows {
			break
		}
		if i > 0 {
			b.WriteString("\r\n")
		}
		line = Cut(line, columns)
		b.WriteString(line)
		if utf8.RuneCountInString(line) < columns { // after the last column, this would erase the last character
			b.WriteString("\x1b[K")
		}
	}
	b.WriteString("\x1b[J")
	_, err := io.WriteString(s.out, b.String())
	return err
}

// Cut returns the first columns characters of a line.
func Cut(line string, columns int) string {
	n := 0
	for i := range line {
		if n == columns {
			return line[:i]
		}
		n++
	}
	return line
}

// Close gives the terminal back.
func (s *Screen) Close() error {
	signal.Stop(s.resized)
	s.wake.Close()
	s.over.Wait()
	_, err := io.WriteString(s.out, leaveScreen)
	if e := unix.IoctlSetTermios(int(s.in.Fd()), setTermios, &s.before); err == nil {
		err = e
	}
	return err
}
