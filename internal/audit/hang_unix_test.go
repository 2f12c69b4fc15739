//go:build unix

package audit

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// hangingFile makes a named pipe that nobody reads until drain is called.
func hangingFile(t *testing.T) (path string, drain func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "audit.log")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0) // so that opening it for writing does not wait
	if err != nil {
		t.Fatal(err)
	}
	var reader sync.WaitGroup
	t.Cleanup(func() { f.Close(); reader.Wait() })
	return path, func() { reader.Go(func() { io.Copy(io.Discard, f) }) }
}

// TestPipeNeedsAReader shows that Open does not wait for a program that reads a named pipe, and says what is missing.
// Later, records wait until a program reads the pipe again.
func TestPipeNeedsAReader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "no program reads the named pipe: start that program before the server, or name a file"
	if _, err := Open(Options{Path: path}); !errors.Is(err, syscall.ENXIO) || !strings.Contains(err.Error(), want) {
		t.Fatalf("without a reader: %v", err)
	}
	reader, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // so that opening it does not wait for a writer
	if err != nil {
		t.Fatal(err)
	}
	l := openLog(t, Options{Path: path})
	expect := func(name string) {
		t.Helper()
		line, err := bufio.NewReader(reader).ReadString('\n')
		if err != nil || !strings.Contains(line, name) {
			t.Errorf("read %q, %v; want %s", line, err, name)
		}
		reader.Close()
	}
	l.Write(znode("/first"))
	expect("/first")
	l.Write(znode("/second"))
	if reader, err = os.Open(path); err != nil {
		t.Fatal(err)
	}
	expect("/second")
}
