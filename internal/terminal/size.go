package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// Size returns the columns and rows of the terminal f; 0 if f is not a terminal, or its size is
// not known.
func Size(f *os.File) (columns, rows int) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return int(size.Col), int(size.Row)
}

// Is reports whether f is a terminal.
func Is(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), getTermios)
	return err == nil
}

// CanEdit reports whether standard input and output are a terminal that moves the cursor.
func CanEdit() bool {
	term := os.Getenv("TERM")
	return Is(os.Stdin) && Is(os.Stdout) && term != "" && term != "dumb"
}
