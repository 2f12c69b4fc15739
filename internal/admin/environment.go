package admin

import (
	"cmp"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"

	"bellwether/internal/server"
)

// version2 returns the absolute path of the folder version-2 of a data directory.
func version2(dir string) string {
	p := filepath.Join(dir, "version-2")
	if abs, err := filepath.Abs(p); err == nil {
		return abs
	}
	return p
}

// notAvailable stands for an unknown value, as in ZooKeeper.
const notAvailable = "<NA>"

// javaVersion is the value of java.version. There is no Java, but scripts compare the
// value with the lowest version that ZooKeeper's clients need.
const javaVersion = "17.0.1"

// envi answers the word envi: ZooKeeper's lines, in its order, then go.version. The lines
// about Java describe this program instead.
func envi(w *Admin, _ *server.Server) string {
	var b strings.Builder
	b.WriteString("Environment:\n")
	for _, l := range w.environment() {
		b.WriteString(l[0] + "=" + l[1] + "\n")
	}
	return b.String()
}

// environment returns the names and values of envi.
func (w *Admin) environment() [][2]string {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	mb := func(n uint64) string { return fmt.Sprintf("%dMB", n>>20) }
	name, home := osUser()
	program := known(os.Executable())
	return [][2]string{
		{"zookeeper.version", w.version}, {"host.name", known(os.Hostname())},
		{"java.version", javaVersion}, {"java.vendor", "Bellwether (Go, no Java)"}, {"java.home", filepath.Dir(program)},
		{"java.class.path", program}, {"java.library.path", notAvailable}, {"java.io.tmpdir", os.TempDir()}, {"java.compiler", notAvailable},
		{"os.name", javaOS(runtime.GOOS)}, {"os.arch", javaArch(runtime.GOARCH)}, {"os.version", osVersion()},
		{"user.name", name}, {"user.home", home}, {"user.dir", known(os.Getwd())},
		{"os.memory.free", mb(mem.HeapIdle - mem.HeapReleased)}, {"os.memory.max", mb(cmp.Or(uint64(server.MemoryMax()), mem.Sys))}, {"os.memory.total", mb(mem.Sys)},
		{"go.version", runtime.Version()},
	}
}

// known returns text, or notAvailable if err is not nil.
func known(text string, err error) string {
	if err != nil {
		return notAvailable
	}
	return text
}

// osUser returns the name and home directory of the process's user, or "?", as Java
// does, if the system does not know the user.
func osUser() (name, home string) {
	u, err := user.Current()
	if err != nil {
		return "?", "?"
	}
	return u.Username, u.HomeDir
}

// javaOS returns Java's name of an operating system.
func javaOS(goos string) string {
	names := map[string]string{"linux": "Linux", "darwin": "Mac OS X", "windows": "Windows", "freebsd": "FreeBSD", "openbsd": "OpenBSD", "netbsd": "NetBSD"}
	if name, ok := names[goos]; ok {
		return name
	}
	return goos
}

// javaArch returns Java's name of a processor architecture.
func javaArch(goarch string) string {
	names := map[string]string{"arm64": "aarch64", "386": "i386"}
	if name, ok := names[goarch]; ok {
		return name
	}
	return goarch
}

// osVersion returns the release of the running kernel on systems that provide it in /proc.
func osVersion() string {
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	return known(strings.TrimSpace(string(text)), err)
}
