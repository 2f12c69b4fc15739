package admin

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"bellwether/internal/server"
)

// version2 is the folder that holds the files of a data directory.
func version2(dir string) string {
	p := filepath.Join(dir, "version-2")
	if abs, err := filepath.Abs(p); err == nil {
		return abs
	}
	return p
}

// envi lists where the server runs. The keys are ZooKeeper's as far as they
// mean something here; what speaks of a Java machine speaks of Go.
func envi(w *texts, _ *server.Server) string {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	host, err := os.Hostname()
	if err != nil {
		host = "<NA>"
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "<NA>"
	}
	dir, err := os.Getwd()
	if err != nil {
		dir = "<NA>"
	}
	mb := func(n uint64) string { return fmt.Sprintf("%dMB", n>>20) }
	var b strings.Builder
	b.WriteString("Environment:\n")
	for _, l := range [][2]string{
		{"zookeeper.version", w.version}, {"host.name", host},
		{"go.version", runtime.Version()},
		{"os.name", runtime.GOOS}, {"os.arch", runtime.GOARCH},
		{"user.name", fmt.Sprint(os.Getuid())}, {"user.home", home}, {"user.dir", dir},
		{"os.memory.free", mb(mem.HeapIdle - mem.HeapReleased)}, {"os.memory.max", mb(mem.Sys)}, {"os.memory.total", mb(mem.Sys)},
	} {
		b.WriteString(l[0] + "=" + l[1] + "\n")
	}
	return b.String()
}
