//go:build unix

package audit

import (
	"io"
	"os"
	"path/filepath"
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
