package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"bellwether/zk"
)

// TestClientsCannotTakeAllDescriptors opens far more connections than the server has file descriptors, and lets them stay.
// Meanwhile the server must begin new logs and write snapshots for a client that was there before, and keep its data.
func TestClientsCannotTakeAllDescriptors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "zoo.cfg")
	must(t, os.WriteFile(file, fmt.Appendf(nil, "dataDir=%s\nclientPort=0\nclientPortAddress=127.0.0.1\nsnapCount=50\npreAllocSize=64\nmaxClientCnxns=0\nadmin.enableServer=false\n", dir), 0o600))
	serve := exec.Command("sh", "-c", "ulimit -n 128 && exec bellwether serve --config "+file)
	log, err := serve.StderrPipe()
	must(t, err)
	must(t, serve.Start())
	defer serve.Process.Kill()
	address, lines := awaitServing(t, log)
	rest := make(chan []string)
	go func() {
		var all []string
		for lines.Scan() {
			all = append(all, lines.Text())
		}
		rest <- all
	}()
	c, err := zk.Connect(t.Context(), address, nil)
	must(t, err)
	for range 300 {
		nc, err := net.Dial("tcp", address)
		must(t, err)
		defer nc.Close()
	}
	for i := range 500 {
		if _, _, err := c.Create(t.Context(), fmt.Sprintf("/%d", i), nil); err != nil {
			t.Fatalf("write %d: %v\n%q", i, err, <-rest)
		}
	}
	logs, err := filepath.Glob(filepath.Join(dir, "version-2", "log.*"))
	must(t, err)
	if len(logs) < 3 {
		t.Errorf("only %d logs", len(logs))
	}
	must(t, c.Close(t.Context()))
	must(t, serve.Process.Signal(syscall.SIGTERM))
	all := <-rest
	if err := serve.Wait(); err != nil {
		t.Errorf("%v: %q", err, all)
	}
}

// awaitServing reads the log of a server until it serves, and returns the address and the rest of the log.
func awaitServing(t *testing.T, log io.Reader) (address string, rest *bufio.Scanner) {
	t.Helper()
	rest = bufio.NewScanner(log)
	for rest.Scan() {
		if m := serving.FindStringSubmatch(rest.Text()); m != nil {
			return m[1], rest
		}
	}
	t.Fatal("the server does not serve")
	return "", nil
}
