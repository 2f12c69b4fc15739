package admin

import (
	"fmt"
	"os"
	"os/user"
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

// notAvailable is what ZooKeeper shows where it does not know a value.
const notAvailable = "<NA>"

// javaVersion stands in the line java.version: there is no Java, and scripts
// compare the line with the least version that ZooKeeper's clients need.
const javaVersion = "17.0.1"

// envi lists where the server runs: ZooKeeper's lines, in its order, then
// go.version. The lines on Java describe this program instead.
func envi(w *texts, _ *server.Server) string {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	mb := func(n uint64) string { return fmt.Sprintf("%dMB", n>>20) }
	name, home := osUser()
	program := known(os.Executable())
	var b strings.Builder
	b.WriteString("Environment:\n")
	for _, l := range [][2]string{
		{"zookeeper.version", w.version}, {"host.name", known(os.Hostname())},
		{"java.version", javaVersion}, {"java.vendor", "Bellwether (Go, no Java)"}, {"java.home", filepath.Dir(program)},
		{"java.class.path", program}, {"java.library.path", notAvailable}, {"java.io.tmpdir", os.TempDir()}, {"java.compiler", notAvailable},
		{"os.name", javaOS(runtime.GOOS)}, {"os.arch", javaArch(runtime.GOARCH)}, {"os.version", osVersion()},
		{"user.name", name}, {"user.home", home}, {"user.dir", known(os.Getwd())},
		{"os.memory.free", mb(mem.HeapIdle - mem.HeapReleased)}, {"os.memory.max", mb(mem.Sys)}, {"os.memory.total", mb(mem.Sys)},
		{"go.version", runtime.Version()},
	} {
		b.WriteString(l[0] + "=" + l[1] + "\n")
	}
	return b.String()
}

// known returns a text, or notAvailable if there is an error.
func known(text string, err error) string {
	if err != nil {
		return notAvailable
	}
	return text
}

// osUser returns the name and the home directory of the user that the process
// runs as; "?", as in Java, where the system does not know that user.
func osUser() (name, home string) {
	u, err := user.Current()
	if err != nil {
		return "?", "?"
	}
	return u.Username, u.HomeDir
}

// javaOS is Java's name of an operating system.
func javaOS(goos string) string {
	names := map[string]string{"linux": "Linux", "darwin": "Mac OS X", "windows": "Windows", "freebsd": "FreeBSD", "openbsd": "OpenBSD", "netbsd": "NetBSD"}
	if name, ok := names[goos]; ok {
		return name
	}
	return goos
}

// javaArch is Java's name of a processor.
func javaArch(goarch string) string {
	names := map[string]string{"arm64": "aarch64", "386": "i386"}
	if name, ok := names[goarch]; ok {
		return name
	}
	return goarch
}

// osVersion is the release of the running kernel, where the system tells it in
// a file.
func osVersion() string {
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	return known(strings.TrimSpace(string(text)), err)
}
