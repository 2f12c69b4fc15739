//go:build unix

package secure

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"
)

// TestWatchEndsWhileAReadWaits shows that Watch ends with its context although a file cannot be read. A named pipe
// without a writer stands for a file on a disk that does not answer.
func TestWatchEndsWhileAReadWaits(t *testing.T) {
	ca := authority(t, "ca")
	settings := settingsFor(t, Servers, t.TempDir(), ca.issue(t, "first", nil), ca)
	s, err := openAt(settings, atNoon)
	if err != nil {
		t.Fatal(err)
	}
	pipe := settings.KeyStore.Location
	if err := os.Remove(pipe); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Watch(ctx, func(err error) { t.Errorf("told %v", err) })
	}()
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // returns when Watch reads the pipe
	if err != nil {
		t.Fatal(err)
	}
	stop()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Error("Watch does not end")
	}
	writer.Close() // so that the read ends
	<-done
	s.mu.Lock() // waits for the goroutine of the read
	defer s.mu.Unlock()
}
