package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"bellwether/internal/portblock"
)

// TestLogOutputDoesNotWait writes more than may wait while nobody reads. When somebody reads, the first lines, the number of those
// that were lost, and later lines must be there.
func TestLogOutputDoesNotWait(t *testing.T) {
	r, w := io.Pipe()
	var o *logOutput
	o = newLogOutput(w, func(n int) { fmt.Fprintf(o, "lost %d\n", n) })
	const lines = 3 * logBytesMax / 100
	for i := range lines {
		fmt.Fprintf(o, "%099d\n", i)
	}
	read := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(r)
		read <- all
	}()
	o.close()
	fmt.Fprintln(o, "after the end")
	w.Close()
	all := bytes.Split(bytes.TrimSuffix(<-read, []byte("\n")), []byte("\n"))
	n := 0
	if _, err := fmt.Sscanf(string(all[len(all)-1]), "lost %d", &n); err != nil || n == 0 || n+len(all)-1 != lines {
		t.Errorf("%d lines were read, the last one is %q, want %d with those that were lost", len(all), all[len(all)-1], lines)
	}
	for i, line := range all[:len(all)-1] {
		if want := fmt.Sprintf("%099d", i); string(line) != want {
			t.Fatalf("line %d is %q", i, line)
		}
	}
}

// TestServerWithAnUnreadLog starts a server whose log goes to a full pipe that nobody reads. It must serve nevertheless. When
// the pipe is read at last, the log is there.
func TestServerWithAnUnreadLog(t *testing.T) {
	ports, err := portblock.Free("127.0.0.1", 1)
	must(t, err)
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	for _, size := range []int{1 << 12, 1} { // first whole pages, then what is left
		fillPipe(t, w, size)
	}
	serve := exec.Command("bellwether", "serve", "--listen", address, "--data", t.TempDir())
	serve.Stderr = w
	must(t, serve.Start())
	defer serve.Process.Kill()
	w.Close()
	for _, args := range [][]string{{"create", "/a", "b"}, {"get", "/a"}, {"status"}} {
		out, err := exec.Command("bellwether", append(args, "--server", address)...).CombinedOutput()
		if err != nil {
			t.Errorf("%q: %v: %s", args, err, out)
		}
	}
	log := make(chan string)
	go func() {
		all, _ := io.ReadAll(r)
		log <- strings.TrimLeft(string(all), "\x00")
	}()
	must(t, serve.Process.Signal(syscall.SIGTERM))
	must(t, serve.Wait())
	if text := <-log; !strings.Contains(text, "msg=serving") || !strings.Contains(text, "msg=ended") {
		t.Errorf("the log is %q", text)
	}
}

// fillPipe writes zeros to a pipe until there is no room for size bytes.
func fillPipe(t *testing.T, w *os.File, size int) {
	t.Helper()
	raw, err := w.SyscallConn()
	must(t, err)
	must(t, raw.Write(func(fd uintptr) bool {
		for err == nil {
			_, err = syscall.Write(int(fd), make([]byte, size))
		}
		return true
	}))
	if err != syscall.EAGAIN {
		t.Fatal(err)
	}
}
