package terminal

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	// historyMax is how many lines a history keeps.
	historyMax = 1000
	// historyLineMax is the longest line that a history keeps, in bytes.
	historyLineMax = 4 << 10
)

// History holds the lines of this and earlier runs. Each line is written to the file at once,
// so that several programs can share it. Only the user can read the file.
//
// The methods Write, GetLine, Len and Dump are those of a history of package readline.
type History struct {
	file    *os.File // nil: kept in memory only
	lines   []string
	private func(line string) bool // lines that are not kept
}

// OpenHistory reads the history in a file and creates the file, with its folder, if it is not there. Without a path
// the history is kept in memory. private reports whether a line must not be kept, because it
// contains a password.
func OpenHistory(path string, private func(line string) bool) (*History, error) {
	h := &History{private: private}
	if path == "" {
		return h, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return h, fmt.Errorf("history: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return h, fmt.Errorf("history: %w", err)
	}
	if err := h.load(f); err != nil {
		return h, errors.Join(fmt.Errorf("history: %w", err), f.Close())
	}
	h.file = f
	return h, nil
}

// load reads the file. If it has grown to twice the maximum, only the newest lines stay in it.
func (h *History) load(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file", f.Name())
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := f.Chmod(0o600); err != nil {
			return err
		}
	}
	in := bufio.NewScanner(f)
	in.Buffer(nil, 2*historyLineMax)
	for in.Scan() {
		if line := unfolded(in.Text()); line != "" && !h.private(line) {
			h.lines = append(h.lines, line)
		}
	}
	if err := in.Err(); err != nil {
		return err
	}
	read := len(h.lines)
	h.lines = slices.Clone(h.lines[max(0, read-historyMax):])
	if read < 2*historyMax {
		return nil
	}
	return h.rewrite(f)
}

func (h *History) rewrite(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	var b strings.Builder
	for _, line := range h.lines {
		b.WriteString(folded(line) + "\n")
	}
	_, err := f.WriteString(b.String())
	return err
}

// folded returns a line, which may contain line ends, as one line of the file.
func folded(line string) string {
	if strings.ContainsAny(line, "\n\r") || line[0] == '"' {
		return strconv.Quote(line)
	}
	return line
}

// unfolded is the reverse of folded. It returns damaged lines as they are.
func unfolded(line string) string {
	if strings.HasPrefix(line, `"`) {
		if s, err := strconv.Unquote(line); err == nil {
			return s
		}
	}
	return line
}

// Write adds a line. It adds nothing if the line is empty, too long, private, or equal to the
// one before, or begins with a blank.
func (h *History) Write(line string) (int, error) {
	line = strings.TrimRight(line, " \t\r\n")
	if line == "" || line[0] == ' ' || len(line) > historyLineMax || h.private(line) ||
		len(h.lines) > 0 && h.lines[len(h.lines)-1] == line {
		return len(h.lines), nil
	}
	h.lines = append(h.lines, line)
	if len(h.lines) > historyMax {
		h.lines = slices.Delete(h.lines, 0, 1)
	}
	if h.file == nil {
		return len(h.lines), nil
	}
	_, err := h.file.WriteString(folded(line) + "\n")
	return len(h.lines), err
}

// GetLine returns a line; 0 is the oldest.
func (h *History) GetLine(i int) (string, error) {
	if i < 0 || i >= len(h.lines) {
		return "", fmt.Errorf("no line %d in the history, which has %d", i, len(h.lines))
	}
	return h.lines[i], nil
}

// Len returns the number of lines.
func (h *History) Len() int { return len(h.lines) }

// Dump returns all lines.
func (h *History) Dump() any { return slices.Clone(h.lines) }

// Close closes the file.
func (h *History) Close() error {
	if h.file == nil {
		return nil
	}
	return h.file.Close()
}
